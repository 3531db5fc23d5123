%struct.question = type { i64, i64, i64, i64 }
%struct.timespec = type { i64, i64 }
%struct.block = type { i64, i64, i64 }
%struct.unaligned = type { i64 }
declare i64 @llvm.bswap.i64(i64)
declare i32 @llvm.bswap.i32(i32)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.fshl.i64(i64, i64, i64)

define internal void @copy(ptr %0, ptr %1, i64 %2) #0 {
  %4 = icmp eq i64 %2, 8
  br i1 %4, label %7, label %5
5:
  %6 = icmp ugt i64 %2, 7
  br i1 %6, label %14, label %9
7:
  %8 = load i64, ptr %1, align 1
  store i64 %8, ptr %0, align 1
  br label %32
9:
  %10 = phi ptr [ %0, %5 ], [ %20, %14 ]
  %11 = phi ptr [ %1, %5 ], [ %21, %14 ]
  %12 = phi i64 [ %2, %5 ], [ %19, %14 ]
  %13 = icmp eq i64 %12, 0
  br i1 %13, label %32, label %23
14:
  %15 = phi i64 [ %19, %14 ], [ %2, %5 ]
  %16 = phi ptr [ %21, %14 ], [ %1, %5 ]
  %17 = phi ptr [ %20, %14 ], [ %0, %5 ]
  %18 = load i64, ptr %16, align 1
  store i64 %18, ptr %17, align 1
  %19 = add i64 %15, -8
  %20 = getelementptr inbounds nuw i8, ptr %17, i64 8
  %21 = getelementptr inbounds nuw i8, ptr %16, i64 8
  %22 = icmp ugt i64 %19, 7
  br i1 %22, label %14, label %9
23:
  %24 = phi i64 [ %30, %23 ], [ %12, %9 ]
  %25 = phi ptr [ %27, %23 ], [ %11, %9 ]
  %26 = phi ptr [ %29, %23 ], [ %10, %9 ]
  %27 = getelementptr inbounds nuw i8, ptr %25, i64 1
  %28 = load i8, ptr %25, align 1
  %29 = getelementptr inbounds nuw i8, ptr %26, i64 1
  store i8 %28, ptr %26, align 1
  %30 = add nsw i64 %24, -1
  %31 = icmp eq i64 %30, 0
  br i1 %31, label %32, label %23
32:
  ret void
}

define internal void @wake(i64 %0, i64 %1) #0 {
  %3 = alloca %struct.question, align 8
  store i64 %1, ptr %3, align 8
  %4 = getelementptr inbounds nuw i8, ptr %3, i64 8
  store i64 0, ptr %4, align 8
  %5 = getelementptr inbounds nuw i8, ptr %3, i64 16
  store i64 4294967296, ptr %5, align 8
  %6 = getelementptr inbounds nuw i8, ptr %3, i64 24
  store i64 0, ptr %6, align 8
  %7 = inttoptr i64 %0 to ptr
  call void %7(ptr %3)
  ret void
}

define internal i64 @task(i64 %0, i64 %1, i64 %2) #0 {
  %4 = alloca %struct.question, align 8
  %5 = icmp eq i64 %0, 0
  br i1 %5, label %6, label %12
6:
  store i64 %2, ptr %4, align 8
  %7 = getelementptr inbounds nuw i8, ptr %4, i64 8
  store i64 0, ptr %7, align 8
  %8 = getelementptr inbounds nuw i8, ptr %4, i64 16
  store i64 8589934592, ptr %8, align 8
  %9 = getelementptr inbounds nuw i8, ptr %4, i64 24
  store i64 0, ptr %9, align 8
  %10 = inttoptr i64 %1 to ptr
  call void %10(ptr %4)
  %11 = load i64, ptr %4, align 8
  br label %12
12:
  %13 = phi i64 [ %11, %6 ], [ %0, %3 ]
  ret i64 %13
}

define internal i64 @clock(i64 %0, i64 %1, i64 %2) #0 {
  %4 = alloca %struct.question, align 8
  %5 = alloca %struct.timespec, align 8
  %6 = icmp eq i64 %0, 0
  br i1 %6, label %7, label %13
7:
  store i64 %2, ptr %4, align 8
  %8 = getelementptr inbounds nuw i8, ptr %4, i64 8
  store i64 0, ptr %8, align 8
  %9 = getelementptr inbounds nuw i8, ptr %4, i64 16
  store i64 8589934592, ptr %9, align 8
  %10 = getelementptr inbounds nuw i8, ptr %4, i64 24
  store i64 0, ptr %10, align 8
  %11 = inttoptr i64 %1 to ptr
  call void %11(ptr %4)
  %12 = load i64, ptr %4, align 8
  br label %21
13:
  %14 = inttoptr i64 %0 to ptr
  %15 = call i32 %14(i32 1, ptr %5)
  %16 = load i64, ptr %5, align 8
  %17 = mul i64 %16, 1000000000
  %18 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %19 = load i64, ptr %18, align 8
  %20 = add i64 %17, %19
  br label %21
21:
  %22 = phi i64 [ %20, %13 ], [ %12, %7 ]
  ret i64 %22
}

define internal void @comm(ptr %0, i64 %1, i64 %2, i64 %3) #0 {
  %5 = alloca [2 x i64], align 8
  store i64 %2, ptr %5, align 8
  %6 = getelementptr inbounds nuw i8, ptr %5, i64 8
  store i64 %3, ptr %6, align 8
  %7 = icmp eq i64 %1, 0
  br i1 %7, label %21, label %8
8:
  %9 = phi i64 [ %11, %17 ], [ 0, %4 ]
  %10 = icmp ult i64 %9, 15
  %11 = add nuw i64 %9, 1
  %12 = icmp ult i64 %11, %1
  %13 = select i1 %10, i1 %12, i1 false
  br i1 %13, label %14, label %17
14:
  %15 = getelementptr inbounds nuw i8, ptr %5, i64 %9
  %16 = load i8, ptr %15, align 1
  br label %17
17:
  %18 = phi i8 [ %16, %14 ], [ 0, %8 ]
  %19 = getelementptr inbounds nuw i8, ptr %0, i64 %9
  store i8 %18, ptr %19, align 1
  %20 = icmp eq i64 %11, %1
  br i1 %20, label %21, label %8
21:
  ret void
}

define internal i64 @random(ptr %0) #0 {
  %2 = load i64, ptr %0, align 8
  %3 = lshr i64 %2, 12
  %4 = xor i64 %3, %2
  %5 = shl i64 %4, 25
  %6 = xor i64 %5, %4
  %7 = lshr i64 %6, 27
  %8 = xor i64 %7, %6
  store i64 %8, ptr %0, align 8
  %9 = mul i64 %8, 2685821657736338717
  %10 = lshr i64 %9, 32
  ret i64 %10
}

define internal i64 @read(ptr %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5) #0 {
  %7 = alloca %struct.question, align 8
  %8 = inttoptr i64 %3 to ptr
  %9 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %10 = load i64, ptr %9, align 8
  %11 = inttoptr i64 %10 to ptr
  %12 = load i64, ptr %8, align 8
  %13 = icmp eq i64 %12, 0
  br i1 %13, label %63, label %17
14:
  %15 = add nuw i64 %18, 1
  %16 = icmp eq i64 %15, %12
  br i1 %16, label %63, label %17
17:
  %18 = phi i64 [ %15, %14 ], [ 0, %6 ]
  %19 = getelementptr inbounds nuw %struct.block, ptr %11, i64 %18
  %20 = load i64, ptr %19, align 8
  %21 = sub i64 %2, %20
  %22 = getelementptr inbounds nuw i8, ptr %19, i64 8
  %23 = load i64, ptr %22, align 8
  %24 = icmp uge i64 %21, %23
  %25 = sub nuw i64 %23, %21
  %26 = icmp ugt i64 %1, %25
  %27 = select i1 %24, i1 true, i1 %26
  br i1 %27, label %14, label %28
28:
  %29 = getelementptr inbounds nuw i8, ptr %19, i64 16
  %30 = load i64, ptr %29, align 8
  %31 = add i64 %30, %21
  %32 = icmp eq i64 %31, 0
  br i1 %32, label %63, label %33
33:
  %34 = inttoptr i64 %31 to ptr
  %35 = icmp eq i64 %1, 8
  br i1 %35, label %38, label %36
36:
  %37 = icmp ugt i64 %1, 7
  br i1 %37, label %45, label %40
38:
  %39 = load i64, ptr %34, align 1
  store i64 %39, ptr %0, align 1
  br label %83
40:
  %41 = phi ptr [ %0, %36 ], [ %51, %45 ]
  %42 = phi ptr [ %34, %36 ], [ %52, %45 ]
  %43 = phi i64 [ %1, %36 ], [ %50, %45 ]
  %44 = icmp eq i64 %43, 0
  br i1 %44, label %83, label %54
45:
  %46 = phi i64 [ %50, %45 ], [ %1, %36 ]
  %47 = phi ptr [ %52, %45 ], [ %34, %36 ]
  %48 = phi ptr [ %51, %45 ], [ %0, %36 ]
  %49 = load i64, ptr %47, align 1
  store i64 %49, ptr %48, align 1
  %50 = add i64 %46, -8
  %51 = getelementptr inbounds nuw i8, ptr %48, i64 8
  %52 = getelementptr inbounds nuw i8, ptr %47, i64 8
  %53 = icmp ugt i64 %50, 7
  br i1 %53, label %45, label %40
54:
  %55 = phi i64 [ %61, %54 ], [ %43, %40 ]
  %56 = phi ptr [ %58, %54 ], [ %42, %40 ]
  %57 = phi ptr [ %60, %54 ], [ %41, %40 ]
  %58 = getelementptr inbounds nuw i8, ptr %56, i64 1
  %59 = load i8, ptr %56, align 1
  %60 = getelementptr inbounds nuw i8, ptr %57, i64 1
  store i8 %59, ptr %57, align 1
  %61 = add nsw i64 %55, -1
  %62 = icmp eq i64 %61, 0
  br i1 %62, label %83, label %54
63:
  %64 = icmp eq i64 %1, 0
  br i1 %64, label %83, label %65
65:
  %66 = icmp eq i64 %5, 0
  br i1 %66, label %67, label %68
67:
  br label %77
68:
  store i64 %2, ptr %7, align 8
  %69 = ptrtoint ptr %0 to i64
  %70 = getelementptr inbounds nuw i8, ptr %7, i64 8
  store i64 %69, ptr %70, align 8
  %71 = getelementptr inbounds nuw i8, ptr %7, i64 16
  store i64 %1, ptr %71, align 8
  %72 = getelementptr inbounds nuw i8, ptr %7, i64 24
  store i64 1, ptr %72, align 8
  %73 = inttoptr i64 %5 to ptr
  call void %73(ptr %7)
  %74 = load i64, ptr %72, align 8
  %75 = and i64 %74, 4294967295
  %76 = icmp eq i64 %75, 0
  br i1 %76, label %83, label %77
77:
  br label %78
78:
  %79 = phi i64 [ %81, %78 ], [ 0, %77 ]
  %80 = getelementptr inbounds nuw i8, ptr %0, i64 %79
  store volatile i8 0, ptr %80, align 1
  %81 = add nuw i64 %79, 1
  %82 = icmp eq i64 %81, %1
  br i1 %82, label %83, label %78
83:
  %84 = phi i64 [ 0, %40 ], [ 0, %38 ], [ 0, %63 ], [ 0, %68 ], [ -14, %78 ], [ 0, %54 ]
  ret i64 %84
}

define internal i64 @read_string(ptr %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5) #0 {
  %7 = alloca %struct.question, align 8
  %8 = alloca [256 x i8], align 16
  %9 = add i64 %1, -1
  %10 = icmp eq i64 %1, 0
  br i1 %10, label %88, label %11
11:
  %12 = icmp eq i64 %9, 0
  br i1 %12, label %86, label %13
13:
  %14 = inttoptr i64 %3 to ptr
  %15 = getelementptr inbounds nuw i8, ptr %14, i64 8
  %16 = icmp eq i64 %5, 0
  %17 = ptrtoint ptr %8 to i64
  %18 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %19 = getelementptr inbounds nuw i8, ptr %7, i64 16
  %20 = getelementptr inbounds nuw i8, ptr %7, i64 24
  %21 = inttoptr i64 %5 to ptr
  br label %25
22:
  %23 = phi i64 [ %26, %71 ], [ %72, %84 ]
  %24 = icmp ult i64 %23, %9
  br i1 %24, label %25, label %86
25:
  %26 = phi i64 [ 0, %13 ], [ %23, %22 ]
  %27 = add i64 %26, %2
  %28 = and i64 %27, 255
  %29 = sub nuw nsw i64 256, %28
  %30 = sub nuw i64 %9, %26
  %31 = call i64 @llvm.umin.i64(i64 %30, i64 %29)
  %32 = load i64, ptr %15, align 8
  %33 = inttoptr i64 %32 to ptr
  %34 = load i64, ptr %14, align 8
  %35 = icmp eq i64 %34, 0
  br i1 %35, label %39, label %41
36:
  %37 = add nuw i64 %42, 1
  %38 = icmp eq i64 %37, %34
  br i1 %38, label %39, label %41
39:
  %40 = add i64 %31, %26
  br label %58
41:
  %42 = phi i64 [ %37, %36 ], [ 0, %25 ]
  %43 = getelementptr inbounds nuw %struct.block, ptr %33, i64 %42
  %44 = load i64, ptr %43, align 8
  %45 = sub i64 %27, %44
  %46 = getelementptr inbounds nuw i8, ptr %43, i64 8
  %47 = load i64, ptr %46, align 8
  %48 = icmp uge i64 %45, %47
  %49 = sub nuw i64 %47, %45
  %50 = icmp ugt i64 %31, %49
  %51 = select i1 %48, i1 true, i1 %50
  br i1 %51, label %36, label %52
52:
  %53 = getelementptr inbounds nuw i8, ptr %43, i64 16
  %54 = load i64, ptr %53, align 8
  %55 = add i64 %54, %45
  %56 = add i64 %31, %26
  %57 = icmp eq i64 %55, 0
  br i1 %57, label %58, label %71
58:
  %59 = phi i64 [ %40, %39 ], [ %56, %52 ]
  br i1 %16, label %60, label %61
60:
  br label %65
61:
  store i64 %27, ptr %7, align 8
  store i64 %17, ptr %18, align 8
  store i64 %31, ptr %19, align 8
  store i64 1, ptr %20, align 8
  call void %21(ptr %7)
  %62 = load i64, ptr %20, align 8
  %63 = and i64 %62, 4294967295
  %64 = icmp eq i64 %63, 0
  br i1 %64, label %71, label %65
65:
  br label %66
66:
  %67 = phi i64 [ %69, %66 ], [ 0, %65 ]
  %68 = getelementptr inbounds nuw i8, ptr %0, i64 %67
  store volatile i8 0, ptr %68, align 1
  %69 = add nuw i64 %67, 1
  %70 = icmp eq i64 %69, %1
  br i1 %70, label %88, label %66
71:
  %72 = phi i64 [ %56, %52 ], [ %59, %61 ]
  %73 = phi i64 [ %55, %52 ], [ %17, %61 ]
  %74 = sub i64 %73, %26
  %75 = inttoptr i64 %74 to ptr
  %76 = icmp ult i64 %26, %72
  br i1 %76, label %77, label %22
77:
  %78 = phi i64 [ %83, %84 ], [ %26, %71 ]
  %79 = getelementptr inbounds nuw i8, ptr %75, i64 %78
  %80 = load i8, ptr %79, align 1
  %81 = getelementptr inbounds nuw i8, ptr %0, i64 %78
  store i8 %80, ptr %81, align 1
  %82 = icmp eq i8 %80, 0
  %83 = add i64 %78, 1
  br i1 %82, label %88, label %84
84:
  %85 = icmp eq i64 %83, %72
  br i1 %85, label %22, label %77
86:
  %87 = getelementptr inbounds nuw i8, ptr %0, i64 %9
  store i8 0, ptr %87, align 1
  br label %88
88:
  %89 = phi i64 [ -14, %66 ], [ 0, %6 ], [ %1, %86 ], [ %83, %77 ]
  ret i64 %89
}

define internal i64 @quotient(i64 %0, i64 %1) #0 {
  br label %3
3:
  %4 = phi i64 [ %0, %2 ], [ %9, %3 ]
  %5 = phi i32 [ 0, %2 ], [ %18, %3 ]
  %6 = phi i64 [ 0, %2 ], [ %17, %3 ]
  %7 = phi i64 [ 0, %2 ], [ %15, %3 ]
  %8 = call i64 @llvm.fshl.i64(i64 %6, i64 %4, i64 1)
  %9 = shl i64 %4, 1
  %10 = shl i64 %7, 1
  %11 = icmp slt i64 %6, 0
  %12 = icmp uge i64 %8, %1
  %13 = select i1 %11, i1 true, i1 %12
  %14 = zext i1 %13 to i64
  %15 = or disjoint i64 %10, %14
  %16 = select i1 %13, i64 %1, i64 0
  %17 = sub i64 %8, %16
  %18 = add nuw nsw i32 %5, 1
  %19 = icmp eq i32 %18, 64
  br i1 %19, label %20, label %3
20:
  ret i64 %15
}

define internal i64 @rest(i64 %0, i64 %1) #0 {
  br label %3
3:
  %4 = phi i64 [ %0, %2 ], [ %8, %3 ]
  %5 = phi i32 [ 0, %2 ], [ %14, %3 ]
  %6 = phi i64 [ 0, %2 ], [ %13, %3 ]
  %7 = call i64 @llvm.fshl.i64(i64 %6, i64 %4, i64 1)
  %8 = shl i64 %4, 1
  %9 = icmp slt i64 %6, 0
  %10 = icmp uge i64 %7, %1
  %11 = select i1 %9, i1 true, i1 %10
  %12 = select i1 %11, i64 %1, i64 0
  %13 = sub i64 %7, %12
  %14 = add nuw nsw i32 %5, 1
  %15 = icmp eq i32 %14, 64
  br i1 %15, label %16, label %3
16:
  ret i64 %13
}

define internal i64 @reserve(i64 %0, i64 %1, i64 %2, i64 %3, i32 %4) #1 {
  %6 = inttoptr i64 %0 to ptr
  %7 = add i64 %1, 15
  %8 = and i64 %7, -8
  %9 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %10 = load i64, ptr %9, align 8
  %11 = call i64 @llvm.bswap.i64(i64 %10)
  %12 = add i64 %11, %8
  %13 = icmp ugt i64 %8, %3
  br i1 %13, label %62, label %14
14:
  %15 = icmp eq i32 %4, 0
  %16 = getelementptr inbounds nuw i8, ptr %6, i64 64
  %17 = add i64 %3, -8
  %18 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %19 = load i64, ptr %6, align 8
  %20 = call i64 @llvm.bswap.i64(i64 %19)
  %21 = sub i64 %12, %20
  %22 = icmp ugt i64 %21, %3
  br i1 %22, label %35, label %23
23:
  %24 = and i64 %11, %17
  %25 = getelementptr inbounds nuw i8, ptr %16, i64 %24
  %26 = trunc i64 %1 to i32
  %27 = or i32 %26, -2147483648
  %28 = call i32 @llvm.bswap.i32(i32 %27)
  store i32 %28, ptr %25, align 4
  %29 = trunc i64 %2 to i32
  %30 = call i32 @llvm.bswap.i32(i32 %29)
  %31 = getelementptr inbounds nuw i8, ptr %25, i64 4
  store i32 %30, ptr %31, align 4
  %32 = call i64 @llvm.bswap.i64(i64 %12)
  store i64 %32, ptr %9, align 8
  %33 = getelementptr inbounds nuw i8, ptr %25, i64 8
  %34 = ptrtoint ptr %33 to i64
  br label %68
35:
  %36 = phi i64 [ %58, %53 ], [ %20, %14 ]
  %37 = sub i64 %11, %36
  %38 = icmp ugt i64 %37, %3
  %39 = select i1 %15, i1 true, i1 %38
  br i1 %39, label %62, label %40
40:
  %41 = and i64 %36, %17
  %42 = getelementptr inbounds nuw i8, ptr %16, i64 %41
  %43 = load i32, ptr %42, align 4
  %44 = call i32 @llvm.bswap.i32(i32 %43)
  %45 = icmp sgt i32 %44, -1
  br i1 %45, label %46, label %62
46:
  %47 = icmp samesign ult i32 %44, 1073741824
  br i1 %47, label %48, label %53
48:
  %49 = load i64, ptr %18, align 8
  %50 = call i64 @llvm.bswap.i64(i64 %49)
  %51 = add i64 %50, 1
  %52 = call i64 @llvm.bswap.i64(i64 %51)
  store i64 %52, ptr %18, align 8
  br label %53
53:
  %54 = and i32 %44, 1073741823
  %55 = add nuw nsw i32 %54, 15
  %56 = and i32 %55, 2147483640
  %57 = zext nneg i32 %56 to i64
  %58 = add i64 %36, %57
  %59 = call i64 @llvm.bswap.i64(i64 %58)
  store i64 %59, ptr %6, align 8
  %60 = sub i64 %12, %58
  %61 = icmp ugt i64 %60, %3
  br i1 %61, label %35, label %23
62:
  %63 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %64 = load i64, ptr %63, align 8
  %65 = call i64 @llvm.bswap.i64(i64 %64)
  %66 = add i64 %65, 1
  %67 = call i64 @llvm.bswap.i64(i64 %66)
  store i64 %67, ptr %63, align 8
  br label %68
68:
  %69 = phi i64 [ %34, %23 ], [ 0, %62 ]
  ret i64 %69
}

define internal void @commit(i64 %0, i32 %1) #0 {
  %3 = add i64 %0, -8
  %4 = inttoptr i64 %3 to ptr
  %5 = load i32, ptr %4, align 4
  %6 = and i32 %5, -129
  %7 = call i32 @llvm.bswap.i32(i32 %1)
  %8 = or i32 %6, %7
  store i32 %8, ptr %4, align 4
  ret void
}

define internal i64 @table_next(i64 %0, ptr %1, i32 %2, i32 %3, i64 %4, i64 %5, i32 %6) #1 {
  %8 = inttoptr i64 %0 to ptr
  %9 = getelementptr inbounds nuw i8, ptr %8, i64 16
  %10 = load i64, ptr %9, align 8
  %11 = call i64 @llvm.bswap.i64(i64 %10)
  %12 = zext i32 %6 to i64
  %13 = call i64 @llvm.umin.i64(i64 %11, i64 %12)
  %14 = trunc nuw i64 %13 to i32
  %15 = icmp ult i32 %2, %14
  br i1 %15, label %16, label %64
16:
  %17 = add i64 %4, %0
  %18 = zext i32 %2 to i64
  br label %23
19:
  %20 = add nuw nsw i64 %24, 1
  %21 = trunc i64 %20 to i32
  %22 = icmp eq i32 %21, %14
  br i1 %22, label %64, label %23
23:
  %24 = phi i64 [ %18, %16 ], [ %20, %19 ]
  %25 = mul i64 %5, %24
  %26 = add i64 %17, %25
  %27 = inttoptr i64 %26 to ptr
  %28 = getelementptr inbounds nuw i8, ptr %27, i64 4
  %29 = load i32, ptr %28, align 4
  %30 = icmp eq i32 %29, 0
  br i1 %30, label %19, label %31
31:
  %32 = getelementptr inbounds nuw i8, ptr %27, i64 8
  %33 = icmp eq i32 %3, 8
  br i1 %33, label %37, label %34
34:
  %35 = zext i32 %3 to i64
  %36 = icmp ugt i32 %3, 7
  br i1 %36, label %44, label %39
37:
  %38 = load i64, ptr %32, align 1
  store i64 %38, ptr %1, align 1
  br label %62
39:
  %40 = phi ptr [ %1, %34 ], [ %50, %44 ]
  %41 = phi ptr [ %32, %34 ], [ %51, %44 ]
  %42 = phi i64 [ %35, %34 ], [ %49, %44 ]
  %43 = icmp eq i64 %42, 0
  br i1 %43, label %62, label %53
44:
  %45 = phi i64 [ %49, %44 ], [ %35, %34 ]
  %46 = phi ptr [ %51, %44 ], [ %32, %34 ]
  %47 = phi ptr [ %50, %44 ], [ %1, %34 ]
  %48 = load i64, ptr %46, align 1
  store i64 %48, ptr %47, align 1
  %49 = add i64 %45, -8
  %50 = getelementptr inbounds nuw i8, ptr %47, i64 8
  %51 = getelementptr inbounds nuw i8, ptr %46, i64 8
  %52 = icmp ugt i64 %49, 7
  br i1 %52, label %44, label %39
53:
  %54 = phi i64 [ %60, %53 ], [ %42, %39 ]
  %55 = phi ptr [ %57, %53 ], [ %41, %39 ]
  %56 = phi ptr [ %59, %53 ], [ %40, %39 ]
  %57 = getelementptr inbounds nuw i8, ptr %55, i64 1
  %58 = load i8, ptr %55, align 1
  %59 = getelementptr inbounds nuw i8, ptr %56, i64 1
  store i8 %58, ptr %56, align 1
  %60 = add nsw i64 %54, -1
  %61 = icmp eq i64 %60, 0
  br i1 %61, label %62, label %53
62:
  %63 = add nuw nsw i64 %24, 1
  br label %72
64:
  %65 = zext i32 %3 to i64
  %66 = icmp eq i32 %3, 0
  br i1 %66, label %72, label %67
67:
  %68 = phi i64 [ %70, %67 ], [ 0, %64 ]
  %69 = getelementptr inbounds nuw i8, ptr %1, i64 %68
  store volatile i8 0, ptr %69, align 1
  %70 = add nuw nsw i64 %68, 1
  %71 = icmp eq i64 %70, %65
  br i1 %71, label %72, label %67
72:
  %73 = phi i64 [ %63, %62 ], [ 0, %64 ], [ 0, %67 ]
  ret i64 %73
}

define internal void @table_key(ptr %0, ptr %1, i64 %2) #0 {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %13, label %5
5:
  %6 = phi i64 [ %11, %5 ], [ 0, %3 ]
  %7 = getelementptr inbounds nuw %struct.unaligned, ptr %1, i64 %6
  %8 = load i64, ptr %7, align 1
  %9 = call i64 @llvm.bswap.i64(i64 %8)
  %10 = getelementptr inbounds nuw i64, ptr %0, i64 %6
  store i64 %9, ptr %10, align 8
  %11 = add nuw i64 %6, 1
  %12 = icmp eq i64 %11, %2
  br i1 %12, label %13, label %5
13:
  ret void
}

define internal i64 @table_find(i64 %0, ptr %1, ptr %2, i64 %3, i32 %4, i64 %5, i64 %6, i64 %7, i64 %8) #1 {
  %10 = zext i32 %4 to i64
  %11 = icmp eq i32 %4, 0
  br i1 %11, label %86, label %12
12:
  %13 = load i64, ptr %1, align 8
  %14 = xor i64 %13, %3
  %15 = mul i64 %14, -7046029254386353131
  %16 = lshr i64 %15, 29
  %17 = xor i64 %16, %15
  %18 = icmp eq i32 %4, 1
  br i1 %18, label %86, label %19
19:
  %20 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %21 = load i64, ptr %20, align 8
  %22 = xor i64 %21, %17
  %23 = mul i64 %22, -7046029254386353131
  %24 = lshr i64 %23, 29
  %25 = xor i64 %24, %23
  %26 = icmp ugt i32 %4, 2
  br i1 %26, label %27, label %86
27:
  %28 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %29 = load i64, ptr %28, align 8
  %30 = xor i64 %29, %25
  %31 = mul i64 %30, -7046029254386353131
  %32 = lshr i64 %31, 29
  %33 = xor i64 %32, %31
  %34 = icmp eq i32 %4, 3
  br i1 %34, label %86, label %35
35:
  %36 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %37 = load i64, ptr %36, align 8
  %38 = xor i64 %37, %33
  %39 = mul i64 %38, -7046029254386353131
  %40 = lshr i64 %39, 29
  %41 = xor i64 %40, %39
  %42 = icmp ugt i32 %4, 4
  br i1 %42, label %43, label %86
43:
  %44 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %45 = load i64, ptr %44, align 8
  %46 = xor i64 %45, %41
  %47 = mul i64 %46, -7046029254386353131
  %48 = lshr i64 %47, 29
  %49 = xor i64 %48, %47
  %50 = icmp eq i32 %4, 5
  br i1 %50, label %86, label %51
51:
  %52 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %53 = load i64, ptr %52, align 8
  %54 = xor i64 %53, %49
  %55 = mul i64 %54, -7046029254386353131
  %56 = lshr i64 %55, 29
  %57 = xor i64 %56, %55
  %58 = icmp ugt i32 %4, 6
  br i1 %58, label %59, label %86
59:
  %60 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %61 = load i64, ptr %60, align 8
  %62 = xor i64 %61, %57
  %63 = mul i64 %62, -7046029254386353131
  %64 = lshr i64 %63, 29
  %65 = xor i64 %64, %63
  %66 = icmp eq i32 %4, 7
  br i1 %66, label %86, label %67
67:
  %68 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %69 = load i64, ptr %68, align 8
  %70 = xor i64 %69, %65
  %71 = mul i64 %70, -7046029254386353131
  %72 = lshr i64 %71, 29
  %73 = xor i64 %72, %71
  %74 = icmp ugt i32 %4, 8
  br i1 %74, label %75, label %86
75:
  %76 = phi i64 [ %84, %75 ], [ 8, %67 ]
  %77 = phi i64 [ %83, %75 ], [ %73, %67 ]
  %78 = getelementptr inbounds nuw i64, ptr %1, i64 %76
  %79 = load i64, ptr %78, align 8
  %80 = xor i64 %79, %77
  %81 = mul i64 %80, -7046029254386353131
  %82 = lshr i64 %81, 29
  %83 = xor i64 %82, %81
  %84 = add nuw nsw i64 %76, 1
  %85 = icmp eq i64 %84, %10
  br i1 %85, label %86, label %75
86:
  %87 = phi i1 [ false, %67 ], [ false, %59 ], [ false, %51 ], [ false, %35 ], [ false, %19 ], [ false, %12 ], [ false, %9 ], [ false, %27 ], [ false, %43 ], [ true, %75 ]
  %88 = phi i1 [ true, %67 ], [ true, %59 ], [ false, %51 ], [ false, %35 ], [ false, %19 ], [ false, %12 ], [ false, %9 ], [ false, %27 ], [ false, %43 ], [ true, %75 ]
  %89 = phi i1 [ true, %67 ], [ true, %59 ], [ true, %51 ], [ false, %35 ], [ false, %19 ], [ false, %12 ], [ false, %9 ], [ false, %27 ], [ true, %43 ], [ true, %75 ]
  %90 = phi i1 [ true, %67 ], [ true, %59 ], [ true, %51 ], [ true, %35 ], [ false, %19 ], [ false, %12 ], [ false, %9 ], [ true, %27 ], [ true, %43 ], [ true, %75 ]
  %91 = phi i1 [ true, %67 ], [ true, %59 ], [ true, %51 ], [ true, %35 ], [ true, %19 ], [ false, %12 ], [ false, %9 ], [ true, %27 ], [ true, %43 ], [ true, %75 ]
  %92 = phi i1 [ true, %67 ], [ true, %59 ], [ true, %51 ], [ true, %35 ], [ false, %19 ], [ false, %12 ], [ false, %9 ], [ false, %27 ], [ true, %43 ], [ true, %75 ]
  %93 = phi i1 [ true, %67 ], [ true, %59 ], [ true, %51 ], [ false, %35 ], [ false, %19 ], [ false, %12 ], [ false, %9 ], [ false, %27 ], [ false, %43 ], [ true, %75 ]
  %94 = phi i1 [ true, %67 ], [ false, %59 ], [ false, %51 ], [ false, %35 ], [ false, %19 ], [ false, %12 ], [ false, %9 ], [ false, %27 ], [ false, %43 ], [ true, %75 ]
  %95 = phi i64 [ %73, %67 ], [ %65, %59 ], [ %57, %51 ], [ %41, %35 ], [ %25, %19 ], [ %17, %12 ], [ %3, %9 ], [ %33, %27 ], [ %49, %43 ], [ %83, %75 ]
  %96 = inttoptr i64 %0 to ptr
  %97 = lshr i64 %95, 32
  %98 = and i64 %97, %5
  %99 = getelementptr inbounds nuw i8, ptr %2, i64 8
  store i64 %98, ptr %99, align 8
  %100 = getelementptr inbounds nuw i8, ptr %96, i64 64
  %101 = add i64 %6, %0
  %102 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %103 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %104 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %105 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %106 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %107 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %108 = getelementptr inbounds nuw i8, ptr %1, i64 56
  br label %109
109:
  %110 = phi i64 [ %98, %86 ], [ %215, %213 ]
  %111 = getelementptr inbounds nuw i32, ptr %100, i64 %110
  %112 = load i32, ptr %111, align 4
  %113 = icmp eq i32 %112, 0
  br i1 %113, label %114, label %115
114:
  store i64 %110, ptr %2, align 8
  br label %218
115:
  %116 = call i32 @llvm.bswap.i32(i32 %112)
  %117 = zext i32 %116 to i64
  %118 = add nsw i64 %117, -1
  %119 = icmp ult i64 %118, %8
  br i1 %119, label %120, label %213
120:
  %121 = mul i64 %118, %7
  %122 = add i64 %101, %121
  %123 = inttoptr i64 %122 to ptr
  %124 = getelementptr inbounds nuw i8, ptr %123, i64 8
  br i1 %11, label %131, label %125
125:
  %126 = load i64, ptr %124, align 8
  %127 = call i64 @llvm.bswap.i64(i64 %126)
  %128 = load i64, ptr %1, align 8
  %129 = icmp eq i64 %127, %128
  %130 = zext i1 %129 to i32
  br label %131
131:
  %132 = phi i32 [ %130, %125 ], [ 1, %120 ]
  br i1 %91, label %133, label %140
133:
  %134 = getelementptr inbounds nuw i8, ptr %123, i64 16
  %135 = load i64, ptr %134, align 8
  %136 = call i64 @llvm.bswap.i64(i64 %135)
  %137 = load i64, ptr %102, align 8
  %138 = icmp eq i64 %136, %137
  %139 = select i1 %138, i32 %132, i32 0
  br label %140
140:
  %141 = phi i32 [ %139, %133 ], [ %132, %131 ]
  br i1 %90, label %142, label %149
142:
  %143 = getelementptr inbounds nuw i8, ptr %123, i64 24
  %144 = load i64, ptr %143, align 8
  %145 = call i64 @llvm.bswap.i64(i64 %144)
  %146 = load i64, ptr %103, align 8
  %147 = icmp eq i64 %145, %146
  %148 = select i1 %147, i32 %141, i32 0
  br label %149
149:
  %150 = phi i32 [ %148, %142 ], [ %141, %140 ]
  br i1 %92, label %151, label %158
151:
  %152 = getelementptr inbounds nuw i8, ptr %123, i64 32
  %153 = load i64, ptr %152, align 8
  %154 = call i64 @llvm.bswap.i64(i64 %153)
  %155 = load i64, ptr %104, align 8
  %156 = icmp eq i64 %154, %155
  %157 = select i1 %156, i32 %150, i32 0
  br label %158
158:
  %159 = phi i32 [ %157, %151 ], [ %150, %149 ]
  br i1 %89, label %160, label %167
160:
  %161 = getelementptr inbounds nuw i8, ptr %123, i64 40
  %162 = load i64, ptr %161, align 8
  %163 = call i64 @llvm.bswap.i64(i64 %162)
  %164 = load i64, ptr %105, align 8
  %165 = icmp eq i64 %163, %164
  %166 = select i1 %165, i32 %159, i32 0
  br label %167
167:
  %168 = phi i32 [ %166, %160 ], [ %159, %158 ]
  br i1 %93, label %169, label %176
169:
  %170 = getelementptr inbounds nuw i8, ptr %123, i64 48
  %171 = load i64, ptr %170, align 8
  %172 = call i64 @llvm.bswap.i64(i64 %171)
  %173 = load i64, ptr %106, align 8
  %174 = icmp eq i64 %172, %173
  %175 = select i1 %174, i32 %168, i32 0
  br label %176
176:
  %177 = phi i32 [ %175, %169 ], [ %168, %167 ]
  br i1 %88, label %178, label %185
178:
  %179 = getelementptr inbounds nuw i8, ptr %123, i64 56
  %180 = load i64, ptr %179, align 8
  %181 = call i64 @llvm.bswap.i64(i64 %180)
  %182 = load i64, ptr %107, align 8
  %183 = icmp eq i64 %181, %182
  %184 = select i1 %183, i32 %177, i32 0
  br label %185
185:
  %186 = phi i32 [ %184, %178 ], [ %177, %176 ]
  br i1 %94, label %187, label %194
187:
  %188 = getelementptr inbounds nuw i8, ptr %123, i64 64
  %189 = load i64, ptr %188, align 8
  %190 = call i64 @llvm.bswap.i64(i64 %189)
  %191 = load i64, ptr %108, align 8
  %192 = icmp eq i64 %190, %191
  %193 = select i1 %192, i32 %186, i32 0
  br label %194
194:
  %195 = phi i32 [ %193, %187 ], [ %186, %185 ]
  %196 = icmp ne i32 %195, 0
  %197 = select i1 %87, i1 %196, i1 false
  br i1 %197, label %198, label %209
198:
  %199 = phi i64 [ %206, %198 ], [ 8, %194 ]
  %200 = getelementptr inbounds nuw i64, ptr %124, i64 %199
  %201 = load i64, ptr %200, align 8
  %202 = call i64 @llvm.bswap.i64(i64 %201)
  %203 = getelementptr inbounds nuw i64, ptr %1, i64 %199
  %204 = load i64, ptr %203, align 8
  %205 = icmp eq i64 %202, %204
  %206 = add nuw nsw i64 %199, 1
  %207 = icmp samesign ult i64 %206, %10
  %208 = select i1 %207, i1 %205, i1 false
  br i1 %208, label %198, label %209
209:
  %210 = phi i1 [ %196, %194 ], [ %205, %198 ]
  br i1 %210, label %211, label %213
211:
  store i64 %110, ptr %2, align 8
  %212 = getelementptr inbounds nuw i8, ptr %2, i64 16
  store i64 %118, ptr %212, align 8
  br label %218
213:
  %214 = add i64 %110, 1
  %215 = and i64 %214, %5
  %216 = icmp eq i64 %215, %98
  br i1 %216, label %217, label %109
217:
  store i64 -1, ptr %2, align 8
  br label %218
218:
  %219 = phi i64 [ %122, %211 ], [ 0, %217 ], [ 0, %114 ]
  ret i64 %219
}

define internal i64 @table_insert(i64 %0, ptr %1, ptr %2, i32 %3, i64 %4, i64 %5, i64 %6, i64 %7) #1 {
  %9 = inttoptr i64 %0 to ptr
  %10 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %11 = load i64, ptr %10, align 8
  %12 = call i64 @llvm.bswap.i64(i64 %11)
  %13 = load i64, ptr %2, align 8
  %14 = icmp eq i64 %13, -1
  br i1 %14, label %279, label %15
15:
  %16 = icmp eq i64 %11, 0
  br i1 %16, label %29, label %17
17:
  %18 = add i64 %12, -1
  %19 = icmp ult i64 %18, %7
  br i1 %19, label %20, label %279
20:
  %21 = add i64 %5, %0
  %22 = mul i64 %18, %6
  %23 = add i64 %21, %22
  %24 = inttoptr i64 %23 to ptr
  %25 = load i32, ptr %24, align 8
  %26 = call i32 @llvm.bswap.i32(i32 %25)
  %27 = zext i32 %26 to i64
  %28 = call i64 @llvm.bswap.i64(i64 %27)
  store i64 %28, ptr %10, align 8
  br label %41
29:
  %30 = getelementptr inbounds nuw i8, ptr %9, i64 16
  %31 = load i64, ptr %30, align 8
  %32 = call i64 @llvm.bswap.i64(i64 %31)
  %33 = icmp ult i64 %32, %7
  br i1 %33, label %34, label %279
34:
  %35 = add i64 %5, %0
  %36 = mul i64 %32, %6
  %37 = add i64 %35, %36
  %38 = inttoptr i64 %37 to ptr
  %39 = add nuw i64 %32, 1
  %40 = call i64 @llvm.bswap.i64(i64 %39)
  store i64 %40, ptr %30, align 8
  br label %41
41:
  %42 = phi ptr [ %24, %20 ], [ %38, %34 ]
  %43 = phi i64 [ %18, %20 ], [ %32, %34 ]
  %44 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %45 = load i64, ptr %44, align 8
  %46 = trunc i64 %45 to i32
  %47 = call i32 @llvm.bswap.i32(i32 %46)
  store i32 %47, ptr %42, align 8
  %48 = getelementptr inbounds nuw i8, ptr %42, i64 4
  store i32 16777216, ptr %48, align 4
  %49 = getelementptr inbounds nuw i8, ptr %42, i64 8
  %50 = icmp ugt i64 %6, 8
  br i1 %50, label %51, label %267
51:
  %52 = icmp eq i32 %3, 0
  br i1 %52, label %57, label %53
53:
  %54 = load i64, ptr %1, align 8
  %55 = call i64 @llvm.bswap.i64(i64 %54)
  store i64 %55, ptr %49, align 8
  %56 = icmp ugt i64 %6, 16
  br i1 %56, label %59, label %267
57:
  store i64 0, ptr %49, align 8
  %58 = icmp ugt i64 %6, 16
  br i1 %58, label %69, label %267
59:
  %60 = icmp eq i32 %3, 1
  br i1 %60, label %65, label %61
61:
  %62 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %63 = load i64, ptr %62, align 8
  %64 = call i64 @llvm.bswap.i64(i64 %63)
  br label %65
65:
  %66 = phi i64 [ %64, %61 ], [ 0, %59 ]
  %67 = getelementptr inbounds nuw i8, ptr %42, i64 16
  store i64 %66, ptr %67, align 8
  %68 = icmp ugt i64 %6, 24
  br i1 %68, label %72, label %267
69:
  %70 = getelementptr inbounds nuw i8, ptr %42, i64 16
  store i64 0, ptr %70, align 8
  %71 = icmp ugt i64 %6, 24
  br i1 %71, label %82, label %267
72:
  %73 = icmp ugt i32 %3, 2
  br i1 %73, label %74, label %78
74:
  %75 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %76 = load i64, ptr %75, align 8
  %77 = call i64 @llvm.bswap.i64(i64 %76)
  br label %78
78:
  %79 = phi i64 [ %77, %74 ], [ 0, %72 ]
  %80 = getelementptr inbounds nuw i8, ptr %42, i64 24
  store i64 %79, ptr %80, align 8
  %81 = icmp ugt i64 %6, 32
  br i1 %81, label %85, label %267
82:
  %83 = getelementptr inbounds nuw i8, ptr %42, i64 24
  store i64 0, ptr %83, align 8
  %84 = icmp ugt i64 %6, 32
  br i1 %84, label %95, label %267
85:
  %86 = icmp ugt i32 %3, 3
  br i1 %86, label %87, label %91
87:
  %88 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %89 = load i64, ptr %88, align 8
  %90 = call i64 @llvm.bswap.i64(i64 %89)
  br label %91
91:
  %92 = phi i64 [ %90, %87 ], [ 0, %85 ]
  %93 = getelementptr inbounds nuw i8, ptr %42, i64 32
  store i64 %92, ptr %93, align 8
  %94 = icmp ugt i64 %6, 40
  br i1 %94, label %98, label %267
95:
  %96 = getelementptr inbounds nuw i8, ptr %42, i64 32
  store i64 0, ptr %96, align 8
  %97 = icmp ugt i64 %6, 40
  br i1 %97, label %108, label %267
98:
  %99 = icmp ugt i32 %3, 4
  br i1 %99, label %100, label %104
100:
  %101 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %102 = load i64, ptr %101, align 8
  %103 = call i64 @llvm.bswap.i64(i64 %102)
  br label %104
104:
  %105 = phi i64 [ %103, %100 ], [ 0, %98 ]
  %106 = getelementptr inbounds nuw i8, ptr %42, i64 40
  store i64 %105, ptr %106, align 8
  %107 = icmp ugt i64 %6, 48
  br i1 %107, label %111, label %267
108:
  %109 = getelementptr inbounds nuw i8, ptr %42, i64 40
  store i64 0, ptr %109, align 8
  %110 = icmp ugt i64 %6, 48
  br i1 %110, label %121, label %267
111:
  %112 = icmp ugt i32 %3, 5
  br i1 %112, label %113, label %117
113:
  %114 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %115 = load i64, ptr %114, align 8
  %116 = call i64 @llvm.bswap.i64(i64 %115)
  br label %117
117:
  %118 = phi i64 [ %116, %113 ], [ 0, %111 ]
  %119 = getelementptr inbounds nuw i8, ptr %42, i64 48
  store i64 %118, ptr %119, align 8
  %120 = icmp ugt i64 %6, 56
  br i1 %120, label %124, label %267
121:
  %122 = getelementptr inbounds nuw i8, ptr %42, i64 48
  store i64 0, ptr %122, align 8
  %123 = icmp ugt i64 %6, 56
  br i1 %123, label %134, label %267
124:
  %125 = icmp ugt i32 %3, 6
  br i1 %125, label %126, label %130
126:
  %127 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %128 = load i64, ptr %127, align 8
  %129 = call i64 @llvm.bswap.i64(i64 %128)
  br label %130
130:
  %131 = phi i64 [ %129, %126 ], [ 0, %124 ]
  %132 = getelementptr inbounds nuw i8, ptr %42, i64 56
  store i64 %131, ptr %132, align 8
  %133 = icmp ugt i64 %6, 64
  br i1 %133, label %137, label %267
134:
  %135 = getelementptr inbounds nuw i8, ptr %42, i64 56
  store i64 0, ptr %135, align 8
  %136 = icmp ugt i64 %6, 64
  br i1 %136, label %147, label %267
137:
  %138 = icmp ugt i32 %3, 7
  br i1 %138, label %139, label %143
139:
  %140 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %141 = load i64, ptr %140, align 8
  %142 = call i64 @llvm.bswap.i64(i64 %141)
  br label %143
143:
  %144 = phi i64 [ %142, %139 ], [ 0, %137 ]
  %145 = getelementptr inbounds nuw i8, ptr %42, i64 64
  store i64 %144, ptr %145, align 8
  %146 = icmp ugt i64 %6, 72
  br i1 %146, label %150, label %267
147:
  %148 = getelementptr inbounds nuw i8, ptr %42, i64 64
  store i64 0, ptr %148, align 8
  %149 = icmp ugt i64 %6, 72
  br i1 %149, label %160, label %267
150:
  %151 = icmp ugt i32 %3, 8
  br i1 %151, label %152, label %156
152:
  %153 = getelementptr inbounds nuw i8, ptr %1, i64 64
  %154 = load i64, ptr %153, align 8
  %155 = call i64 @llvm.bswap.i64(i64 %154)
  br label %156
156:
  %157 = phi i64 [ %155, %152 ], [ 0, %150 ]
  %158 = getelementptr inbounds nuw i8, ptr %42, i64 72
  store i64 %157, ptr %158, align 8
  %159 = icmp ugt i64 %6, 80
  br i1 %159, label %163, label %267
160:
  %161 = getelementptr inbounds nuw i8, ptr %42, i64 72
  store i64 0, ptr %161, align 8
  %162 = icmp ugt i64 %6, 80
  br i1 %162, label %173, label %267
163:
  %164 = icmp ugt i32 %3, 9
  br i1 %164, label %165, label %169
165:
  %166 = getelementptr inbounds nuw i8, ptr %1, i64 72
  %167 = load i64, ptr %166, align 8
  %168 = call i64 @llvm.bswap.i64(i64 %167)
  br label %169
169:
  %170 = phi i64 [ %168, %165 ], [ 0, %163 ]
  %171 = getelementptr inbounds nuw i8, ptr %42, i64 80
  store i64 %170, ptr %171, align 8
  %172 = icmp ugt i64 %6, 88
  br i1 %172, label %176, label %267
173:
  %174 = getelementptr inbounds nuw i8, ptr %42, i64 80
  store i64 0, ptr %174, align 8
  %175 = icmp ugt i64 %6, 88
  br i1 %175, label %186, label %267
176:
  %177 = icmp ugt i32 %3, 10
  br i1 %177, label %178, label %182
178:
  %179 = getelementptr inbounds nuw i8, ptr %1, i64 80
  %180 = load i64, ptr %179, align 8
  %181 = call i64 @llvm.bswap.i64(i64 %180)
  br label %182
182:
  %183 = phi i64 [ %181, %178 ], [ 0, %176 ]
  %184 = getelementptr inbounds nuw i8, ptr %42, i64 88
  store i64 %183, ptr %184, align 8
  %185 = icmp ugt i64 %6, 96
  br i1 %185, label %189, label %267
186:
  %187 = getelementptr inbounds nuw i8, ptr %42, i64 88
  store i64 0, ptr %187, align 8
  %188 = icmp ugt i64 %6, 96
  br i1 %188, label %199, label %267
189:
  %190 = icmp ugt i32 %3, 11
  br i1 %190, label %191, label %195
191:
  %192 = getelementptr inbounds nuw i8, ptr %1, i64 88
  %193 = load i64, ptr %192, align 8
  %194 = call i64 @llvm.bswap.i64(i64 %193)
  br label %195
195:
  %196 = phi i64 [ %194, %191 ], [ 0, %189 ]
  %197 = getelementptr inbounds nuw i8, ptr %42, i64 96
  store i64 %196, ptr %197, align 8
  %198 = icmp ugt i64 %6, 104
  br i1 %198, label %202, label %267
199:
  %200 = getelementptr inbounds nuw i8, ptr %42, i64 96
  store i64 0, ptr %200, align 8
  %201 = icmp ugt i64 %6, 104
  br i1 %201, label %212, label %267
202:
  %203 = icmp ugt i32 %3, 12
  br i1 %203, label %204, label %208
204:
  %205 = getelementptr inbounds nuw i8, ptr %1, i64 96
  %206 = load i64, ptr %205, align 8
  %207 = call i64 @llvm.bswap.i64(i64 %206)
  br label %208
208:
  %209 = phi i64 [ %207, %204 ], [ 0, %202 ]
  %210 = getelementptr inbounds nuw i8, ptr %42, i64 104
  store i64 %209, ptr %210, align 8
  %211 = icmp ugt i64 %6, 112
  br i1 %211, label %215, label %267
212:
  %213 = getelementptr inbounds nuw i8, ptr %42, i64 104
  store i64 0, ptr %213, align 8
  %214 = icmp ugt i64 %6, 112
  br i1 %214, label %225, label %267
215:
  %216 = icmp ugt i32 %3, 13
  br i1 %216, label %217, label %221
217:
  %218 = getelementptr inbounds nuw i8, ptr %1, i64 104
  %219 = load i64, ptr %218, align 8
  %220 = call i64 @llvm.bswap.i64(i64 %219)
  br label %221
221:
  %222 = phi i64 [ %220, %217 ], [ 0, %215 ]
  %223 = getelementptr inbounds nuw i8, ptr %42, i64 112
  store i64 %222, ptr %223, align 8
  %224 = icmp ugt i64 %6, 120
  br i1 %224, label %228, label %267
225:
  %226 = getelementptr inbounds nuw i8, ptr %42, i64 112
  store i64 0, ptr %226, align 8
  %227 = icmp ugt i64 %6, 120
  br i1 %227, label %238, label %267
228:
  %229 = icmp ugt i32 %3, 14
  br i1 %229, label %230, label %234
230:
  %231 = getelementptr inbounds nuw i8, ptr %1, i64 112
  %232 = load i64, ptr %231, align 8
  %233 = call i64 @llvm.bswap.i64(i64 %232)
  br label %234
234:
  %235 = phi i64 [ %233, %230 ], [ 0, %228 ]
  %236 = getelementptr inbounds nuw i8, ptr %42, i64 120
  store i64 %235, ptr %236, align 8
  %237 = icmp ugt i64 %6, 128
  br i1 %237, label %241, label %267
238:
  %239 = getelementptr inbounds nuw i8, ptr %42, i64 120
  store i64 0, ptr %239, align 8
  %240 = icmp ugt i64 %6, 128
  br i1 %240, label %247, label %267
241:
  %242 = icmp ugt i32 %3, 15
  br i1 %242, label %243, label %247
243:
  %244 = getelementptr inbounds nuw i8, ptr %1, i64 120
  %245 = load i64, ptr %244, align 8
  %246 = call i64 @llvm.bswap.i64(i64 %245)
  br label %247
247:
  %248 = phi i64 [ %246, %243 ], [ 0, %241 ], [ 0, %238 ]
  %249 = getelementptr inbounds nuw i8, ptr %42, i64 128
  store i64 %248, ptr %249, align 8
  %250 = icmp ugt i64 %6, 136
  br i1 %250, label %251, label %267
251:
  %252 = phi i32 [ %262, %259 ], [ 16, %247 ]
  %253 = icmp ult i32 %252, %3
  %254 = zext i32 %252 to i64
  br i1 %253, label %255, label %259
255:
  %256 = getelementptr inbounds nuw i64, ptr %1, i64 %254
  %257 = load i64, ptr %256, align 8
  %258 = call i64 @llvm.bswap.i64(i64 %257)
  br label %259
259:
  %260 = phi i64 [ %258, %255 ], [ 0, %251 ]
  %261 = getelementptr inbounds nuw i64, ptr %49, i64 %254
  store i64 %260, ptr %261, align 8
  %262 = add i32 %252, 1
  %263 = shl i32 %262, 3
  %264 = zext i32 %263 to i64
  %265 = add nuw nsw i64 %264, 8
  %266 = icmp ult i64 %265, %6
  br i1 %266, label %251, label %267
267:
  %268 = trunc i64 %43 to i32
  %269 = add i32 %268, 1
  %270 = call i32 @llvm.bswap.i32(i32 %269)
  %271 = getelementptr inbounds nuw i8, ptr %9, i64 64
  %272 = load i64, ptr %2, align 8
  %273 = getelementptr inbounds nuw i32, ptr %271, i64 %272
  store i32 %270, ptr %273, align 4
  %274 = load i64, ptr %9, align 8
  %275 = call i64 @llvm.bswap.i64(i64 %274)
  %276 = add i64 %275, 1
  %277 = call i64 @llvm.bswap.i64(i64 %276)
  store i64 %277, ptr %9, align 8
  %278 = ptrtoint ptr %42 to i64
  br label %279
279:
  %280 = phi i64 [ 0, %17 ], [ 0, %8 ], [ %278, %267 ], [ 0, %29 ]
  ret i64 %280
}

define internal void @table_remove(i64 %0, ptr %1, i32 %2, i64 %3, i64 %4, i64 %5, i64 %6) #1 {
  %8 = inttoptr i64 %0 to ptr
  %9 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %10 = load i64, ptr %9, align 8
  %11 = add i64 %4, %0
  %12 = mul i64 %10, %5
  %13 = add i64 %12, %11
  %14 = inttoptr i64 %13 to ptr
  %15 = load i64, ptr %1, align 8
  %16 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %17 = load i64, ptr %16, align 8
  %18 = lshr i64 %17, 32
  %19 = trunc nuw i64 %18 to i32
  store i32 %19, ptr %14, align 8
  %20 = getelementptr inbounds nuw i8, ptr %14, i64 4
  store i32 0, ptr %20, align 4
  %21 = load i64, ptr %9, align 8
  %22 = add i64 %21, 1
  %23 = call i64 @llvm.bswap.i64(i64 %22)
  store i64 %23, ptr %16, align 8
  %24 = load i64, ptr %8, align 8
  %25 = call i64 @llvm.bswap.i64(i64 %24)
  %26 = add i64 %25, -1
  %27 = call i64 @llvm.bswap.i64(i64 %26)
  store i64 %27, ptr %8, align 8
  %28 = getelementptr inbounds nuw i8, ptr %8, i64 64
  %29 = add i64 %15, 1
  %30 = and i64 %29, %3
  %31 = load i64, ptr %1, align 8
  %32 = icmp eq i64 %30, %31
  br i1 %32, label %64, label %33
33:
  %34 = phi i64 [ %59, %58 ], [ %31, %7 ]
  %35 = phi i64 [ %62, %58 ], [ %30, %7 ]
  %36 = phi i64 [ %60, %58 ], [ %15, %7 ]
  %37 = getelementptr inbounds nuw i32, ptr %28, i64 %35
  %38 = load i32, ptr %37, align 4
  %39 = call i32 @llvm.bswap.i32(i32 %38)
  %40 = zext i32 %39 to i64
  %41 = add nsw i64 %40, -1
  %42 = icmp ult i64 %41, %6
  br i1 %42, label %43, label %64
43:
  %44 = mul i64 %41, %5
  %45 = add i64 %44, %11
  %46 = inttoptr i64 %45 to ptr
  %47 = load i32, ptr %46, align 8
  %48 = call i32 @llvm.bswap.i32(i32 %47)
  %49 = zext i32 %48 to i64
  %50 = sub i64 %35, %49
  %51 = and i64 %50, %3
  %52 = sub i64 %35, %36
  %53 = and i64 %52, %3
  %54 = icmp ult i64 %51, %53
  br i1 %54, label %58, label %55
55:
  %56 = getelementptr inbounds nuw i32, ptr %28, i64 %36
  store i32 %38, ptr %56, align 4
  %57 = load i64, ptr %1, align 8
  br label %58
58:
  %59 = phi i64 [ %57, %55 ], [ %34, %43 ]
  %60 = phi i64 [ %35, %55 ], [ %36, %43 ]
  %61 = add i64 %35, 1
  %62 = and i64 %61, %3
  %63 = icmp eq i64 %62, %59
  br i1 %63, label %64, label %33
64:
  %65 = phi i64 [ %15, %7 ], [ %36, %33 ], [ %60, %58 ]
  %66 = getelementptr inbounds nuw i32, ptr %28, i64 %65
  store i32 0, ptr %66, align 4
  ret void
}
