%struct.question = type { i64, i64, i64, i64 }
%struct.timespec = type { i32, i32 }
%struct.block = type { i64, i64, i64 }
%struct.unaligned = type { i64 }
declare i64 @llvm.bswap.i64(i64)
declare i32 @llvm.bswap.i32(i32)
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i64 @llvm.umin.i64(i64, i64)

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
  %20 = getelementptr inbounds nuw i8, ptr %17, i32 8
  %21 = getelementptr inbounds nuw i8, ptr %16, i32 8
  %22 = icmp ugt i64 %19, 7
  br i1 %22, label %14, label %9
23:
  %24 = phi i64 [ %30, %23 ], [ %12, %9 ]
  %25 = phi ptr [ %27, %23 ], [ %11, %9 ]
  %26 = phi ptr [ %29, %23 ], [ %10, %9 ]
  %27 = getelementptr inbounds nuw i8, ptr %25, i32 1
  %28 = load i8, ptr %25, align 1
  %29 = getelementptr inbounds nuw i8, ptr %26, i32 1
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
  %4 = getelementptr inbounds nuw i8, ptr %3, i32 8
  store i64 0, ptr %4, align 8
  %5 = getelementptr inbounds nuw i8, ptr %3, i32 16
  store i64 4294967296, ptr %5, align 8
  %6 = getelementptr inbounds nuw i8, ptr %3, i32 24
  store i64 0, ptr %6, align 8
  %7 = trunc i64 %0 to i32
  %8 = inttoptr i32 %7 to ptr
  call void %8(ptr %3)
  ret void
}

define internal i64 @task(i64 %0, i64 %1, i64 %2) #0 {
  %4 = alloca %struct.question, align 8
  %5 = icmp eq i64 %0, 0
  br i1 %5, label %6, label %13
6:
  store i64 %2, ptr %4, align 8
  %7 = getelementptr inbounds nuw i8, ptr %4, i32 8
  store i64 0, ptr %7, align 8
  %8 = getelementptr inbounds nuw i8, ptr %4, i32 16
  store i64 8589934592, ptr %8, align 8
  %9 = getelementptr inbounds nuw i8, ptr %4, i32 24
  store i64 0, ptr %9, align 8
  %10 = trunc i64 %1 to i32
  %11 = inttoptr i32 %10 to ptr
  call void %11(ptr %4)
  %12 = load i64, ptr %4, align 8
  br label %13
13:
  %14 = phi i64 [ %12, %6 ], [ %0, %3 ]
  ret i64 %14
}

define internal i64 @clock(i64 %0, i64 %1, i64 %2) #0 {
  %4 = alloca %struct.question, align 8
  %5 = alloca %struct.timespec, align 4
  %6 = icmp eq i64 %0, 0
  br i1 %6, label %7, label %14
7:
  store i64 %2, ptr %4, align 8
  %8 = getelementptr inbounds nuw i8, ptr %4, i32 8
  store i64 0, ptr %8, align 8
  %9 = getelementptr inbounds nuw i8, ptr %4, i32 16
  store i64 8589934592, ptr %9, align 8
  %10 = getelementptr inbounds nuw i8, ptr %4, i32 24
  store i64 0, ptr %10, align 8
  %11 = trunc i64 %1 to i32
  %12 = inttoptr i32 %11 to ptr
  call void %12(ptr %4)
  %13 = load i64, ptr %4, align 8
  br label %25
14:
  %15 = trunc i64 %0 to i32
  %16 = inttoptr i32 %15 to ptr
  %17 = call i32 %16(i32 1, ptr %5)
  %18 = load i32, ptr %5, align 4
  %19 = sext i32 %18 to i64
  %20 = mul nsw i64 %19, 1000000000
  %21 = getelementptr inbounds nuw i8, ptr %5, i32 4
  %22 = load i32, ptr %21, align 4
  %23 = sext i32 %22 to i64
  %24 = add nsw i64 %20, %23
  br label %25
25:
  %26 = phi i64 [ %24, %14 ], [ %13, %7 ]
  ret i64 %26
}

define internal void @comm(ptr %0, i64 %1, i64 %2, i64 %3) #0 {
  %5 = alloca [2 x i64], align 8
  store i64 %2, ptr %5, align 8
  %6 = getelementptr inbounds nuw i8, ptr %5, i32 8
  store i64 %3, ptr %6, align 8
  %7 = icmp eq i64 %1, 0
  br i1 %7, label %21, label %8
8:
  %9 = phi i64 [ %11, %18 ], [ 0, %4 ]
  %10 = icmp ult i64 %9, 15
  %11 = add nuw i64 %9, 1
  %12 = icmp ult i64 %11, %1
  %13 = select i1 %10, i1 %12, i1 false
  %14 = trunc i64 %9 to i32
  br i1 %13, label %15, label %18
15:
  %16 = getelementptr inbounds nuw i8, ptr %5, i32 %14
  %17 = load i8, ptr %16, align 1
  br label %18
18:
  %19 = phi i8 [ %17, %15 ], [ 0, %8 ]
  %20 = getelementptr inbounds nuw i8, ptr %0, i32 %14
  store i8 %19, ptr %20, align 1
  br i1 %12, label %8, label %21
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
  %8 = trunc i64 %3 to i32
  %9 = inttoptr i32 %8 to ptr
  %10 = getelementptr inbounds nuw i8, ptr %9, i32 8
  %11 = load i64, ptr %10, align 8
  %12 = trunc i64 %11 to i32
  %13 = inttoptr i32 %12 to ptr
  %14 = load i64, ptr %9, align 8
  %15 = icmp eq i64 %14, 0
  br i1 %15, label %67, label %20
16:
  %17 = add i32 %21, 1
  %18 = zext i32 %17 to i64
  %19 = icmp ugt i64 %14, %18
  br i1 %19, label %20, label %67
20:
  %21 = phi i32 [ %17, %16 ], [ 0, %6 ]
  %22 = getelementptr inbounds nuw %struct.block, ptr %13, i32 %21
  %23 = load i64, ptr %22, align 8
  %24 = sub i64 %2, %23
  %25 = getelementptr inbounds nuw i8, ptr %22, i32 8
  %26 = load i64, ptr %25, align 8
  %27 = icmp uge i64 %24, %26
  %28 = sub nuw i64 %26, %24
  %29 = icmp ugt i64 %1, %28
  %30 = select i1 %27, i1 true, i1 %29
  br i1 %30, label %16, label %31
31:
  %32 = getelementptr inbounds nuw i8, ptr %22, i32 16
  %33 = load i64, ptr %32, align 8
  %34 = add i64 %33, %24
  %35 = icmp eq i64 %34, 0
  br i1 %35, label %67, label %36
36:
  %37 = trunc i64 %34 to i32
  %38 = inttoptr i32 %37 to ptr
  %39 = icmp eq i64 %1, 8
  br i1 %39, label %42, label %40
40:
  %41 = icmp ugt i64 %1, 7
  br i1 %41, label %49, label %44
42:
  %43 = load i64, ptr %38, align 1
  store i64 %43, ptr %0, align 1
  br label %90
44:
  %45 = phi ptr [ %0, %40 ], [ %55, %49 ]
  %46 = phi ptr [ %38, %40 ], [ %56, %49 ]
  %47 = phi i64 [ %1, %40 ], [ %54, %49 ]
  %48 = icmp eq i64 %47, 0
  br i1 %48, label %90, label %58
49:
  %50 = phi i64 [ %54, %49 ], [ %1, %40 ]
  %51 = phi ptr [ %56, %49 ], [ %38, %40 ]
  %52 = phi ptr [ %55, %49 ], [ %0, %40 ]
  %53 = load i64, ptr %51, align 1
  store i64 %53, ptr %52, align 1
  %54 = add i64 %50, -8
  %55 = getelementptr inbounds nuw i8, ptr %52, i32 8
  %56 = getelementptr inbounds nuw i8, ptr %51, i32 8
  %57 = icmp ugt i64 %54, 7
  br i1 %57, label %49, label %44
58:
  %59 = phi i64 [ %65, %58 ], [ %47, %44 ]
  %60 = phi ptr [ %62, %58 ], [ %46, %44 ]
  %61 = phi ptr [ %64, %58 ], [ %45, %44 ]
  %62 = getelementptr inbounds nuw i8, ptr %60, i32 1
  %63 = load i8, ptr %60, align 1
  %64 = getelementptr inbounds nuw i8, ptr %61, i32 1
  store i8 %63, ptr %61, align 1
  %65 = add nsw i64 %59, -1
  %66 = icmp eq i64 %65, 0
  br i1 %66, label %90, label %58
67:
  %68 = icmp eq i64 %1, 0
  br i1 %68, label %90, label %69
69:
  %70 = icmp eq i64 %5, 0
  br i1 %70, label %71, label %72
71:
  br label %83
72:
  store i64 %2, ptr %7, align 8
  %73 = ptrtoint ptr %0 to i32
  %74 = zext i32 %73 to i64
  %75 = getelementptr inbounds nuw i8, ptr %7, i32 8
  store i64 %74, ptr %75, align 8
  %76 = getelementptr inbounds nuw i8, ptr %7, i32 16
  store i64 %1, ptr %76, align 8
  %77 = getelementptr inbounds nuw i8, ptr %7, i32 24
  store i64 1, ptr %77, align 8
  %78 = trunc i64 %5 to i32
  %79 = inttoptr i32 %78 to ptr
  call void %79(ptr %7)
  %80 = load i64, ptr %77, align 8
  %81 = trunc i64 %80 to i32
  %82 = icmp eq i32 %81, 0
  br i1 %82, label %90, label %83
83:
  br label %84
84:
  %85 = phi i64 [ %88, %84 ], [ 0, %83 ]
  %86 = trunc i64 %85 to i32
  %87 = getelementptr inbounds nuw i8, ptr %0, i32 %86
  store volatile i8 0, ptr %87, align 1
  %88 = add nuw i64 %85, 1
  %89 = icmp ult i64 %88, %1
  br i1 %89, label %84, label %90
90:
  %91 = phi i64 [ 0, %44 ], [ 0, %42 ], [ 0, %67 ], [ 0, %72 ], [ -14, %84 ], [ 0, %58 ]
  ret i64 %91
}

define internal i64 @read_string(ptr %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5) #0 {
  %7 = alloca %struct.question, align 8
  %8 = alloca [256 x i8], align 16
  %9 = add i64 %1, -1
  %10 = icmp eq i64 %1, 0
  br i1 %10, label %98, label %11
11:
  %12 = icmp eq i64 %9, 0
  br i1 %12, label %95, label %13
13:
  %14 = trunc i64 %3 to i32
  %15 = inttoptr i32 %14 to ptr
  %16 = getelementptr inbounds nuw i8, ptr %15, i32 8
  %17 = icmp eq i64 %5, 0
  %18 = ptrtoint ptr %8 to i32
  %19 = zext i32 %18 to i64
  %20 = getelementptr inbounds nuw i8, ptr %7, i32 8
  %21 = getelementptr inbounds nuw i8, ptr %7, i32 16
  %22 = getelementptr inbounds nuw i8, ptr %7, i32 24
  %23 = trunc i64 %5 to i32
  %24 = inttoptr i32 %23 to ptr
  br label %28
25:
  %26 = phi i64 [ %29, %78 ], [ %79, %93 ]
  %27 = icmp ult i64 %26, %9
  br i1 %27, label %28, label %95
28:
  %29 = phi i64 [ 0, %13 ], [ %26, %25 ]
  %30 = add i64 %29, %2
  %31 = and i64 %30, 255
  %32 = sub nuw nsw i64 256, %31
  %33 = sub nuw i64 %9, %29
  %34 = call i64 @llvm.umin.i64(i64 %33, i64 %32)
  %35 = load i64, ptr %16, align 8
  %36 = trunc i64 %35 to i32
  %37 = inttoptr i32 %36 to ptr
  %38 = load i64, ptr %15, align 8
  %39 = icmp eq i64 %38, 0
  br i1 %39, label %44, label %46
40:
  %41 = add i32 %47, 1
  %42 = zext i32 %41 to i64
  %43 = icmp ugt i64 %38, %42
  br i1 %43, label %46, label %44
44:
  %45 = add i64 %34, %29
  br label %64
46:
  %47 = phi i32 [ %41, %40 ], [ 0, %28 ]
  %48 = getelementptr inbounds nuw %struct.block, ptr %37, i32 %47
  %49 = load i64, ptr %48, align 8
  %50 = sub i64 %30, %49
  %51 = getelementptr inbounds nuw i8, ptr %48, i32 8
  %52 = load i64, ptr %51, align 8
  %53 = icmp uge i64 %50, %52
  %54 = sub nuw i64 %52, %50
  %55 = icmp ugt i64 %34, %54
  %56 = select i1 %53, i1 true, i1 %55
  br i1 %56, label %40, label %57
57:
  %58 = getelementptr inbounds nuw i8, ptr %48, i32 16
  %59 = load i64, ptr %58, align 8
  %60 = add i64 %59, %50
  %61 = trunc i64 %60 to i32
  %62 = add i64 %34, %29
  %63 = icmp eq i64 %60, 0
  br i1 %63, label %64, label %78
64:
  %65 = phi i64 [ %45, %44 ], [ %62, %57 ]
  br i1 %17, label %66, label %67
66:
  br label %71
67:
  store i64 %30, ptr %7, align 8
  store i64 %19, ptr %20, align 8
  store i64 %34, ptr %21, align 8
  store i64 1, ptr %22, align 8
  call void %24(ptr %7)
  %68 = load i64, ptr %22, align 8
  %69 = trunc i64 %68 to i32
  %70 = icmp eq i32 %69, 0
  br i1 %70, label %78, label %71
71:
  br label %72
72:
  %73 = phi i64 [ %76, %72 ], [ 0, %71 ]
  %74 = trunc i64 %73 to i32
  %75 = getelementptr inbounds nuw i8, ptr %0, i32 %74
  store volatile i8 0, ptr %75, align 1
  %76 = add nuw i64 %73, 1
  %77 = icmp ult i64 %76, %1
  br i1 %77, label %72, label %98
78:
  %79 = phi i64 [ %62, %57 ], [ %65, %67 ]
  %80 = phi i32 [ %61, %57 ], [ %18, %67 ]
  %81 = trunc i64 %29 to i32
  %82 = sub i32 %80, %81
  %83 = inttoptr i32 %82 to ptr
  %84 = icmp ult i64 %29, %79
  br i1 %84, label %85, label %25
85:
  %86 = phi i64 [ %92, %93 ], [ %29, %78 ]
  %87 = trunc i64 %86 to i32
  %88 = getelementptr inbounds nuw i8, ptr %83, i32 %87
  %89 = load i8, ptr %88, align 1
  %90 = getelementptr inbounds nuw i8, ptr %0, i32 %87
  store i8 %89, ptr %90, align 1
  %91 = icmp eq i8 %89, 0
  %92 = add nuw i64 %86, 1
  br i1 %91, label %98, label %93
93:
  %94 = icmp ult i64 %92, %79
  br i1 %94, label %85, label %25
95:
  %96 = trunc i64 %9 to i32
  %97 = getelementptr inbounds nuw i8, ptr %0, i32 %96
  store i8 0, ptr %97, align 1
  br label %98
98:
  %99 = phi i64 [ -14, %72 ], [ 0, %6 ], [ %1, %95 ], [ %92, %85 ]
  ret i64 %99
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
  %6 = trunc i64 %0 to i32
  %7 = inttoptr i32 %6 to ptr
  %8 = add i64 %1, 15
  %9 = and i64 %8, -8
  %10 = getelementptr inbounds nuw i8, ptr %7, i32 8
  %11 = load i64, ptr %10, align 8
  %12 = call i64 @llvm.bswap.i64(i64 %11)
  %13 = add i64 %12, %9
  %14 = icmp ugt i64 %9, %3
  br i1 %14, label %66, label %15
15:
  %16 = icmp eq i32 %4, 0
  %17 = getelementptr inbounds nuw i8, ptr %7, i32 64
  %18 = add i64 %3, 4294967288
  %19 = getelementptr inbounds nuw i8, ptr %7, i32 24
  %20 = load i64, ptr %7, align 8
  %21 = call i64 @llvm.bswap.i64(i64 %20)
  %22 = sub i64 %13, %21
  %23 = icmp ugt i64 %22, %3
  br i1 %23, label %38, label %24
24:
  %25 = and i64 %12, %18
  %26 = trunc i64 %25 to i32
  %27 = getelementptr inbounds nuw i8, ptr %17, i32 %26
  %28 = trunc i64 %1 to i32
  %29 = or i32 %28, -2147483648
  %30 = call i32 @llvm.bswap.i32(i32 %29)
  store i32 %30, ptr %27, align 4
  %31 = trunc i64 %2 to i32
  %32 = call i32 @llvm.bswap.i32(i32 %31)
  %33 = getelementptr inbounds nuw i8, ptr %27, i32 4
  store i32 %32, ptr %33, align 4
  %34 = call i64 @llvm.bswap.i64(i64 %13)
  store i64 %34, ptr %10, align 8
  %35 = getelementptr inbounds nuw i8, ptr %27, i32 8
  %36 = ptrtoint ptr %35 to i32
  %37 = zext i32 %36 to i64
  br label %72
38:
  %39 = phi i64 [ %62, %57 ], [ %21, %15 ]
  %40 = sub i64 %12, %39
  %41 = icmp ugt i64 %40, %3
  %42 = select i1 %16, i1 true, i1 %41
  br i1 %42, label %66, label %43
43:
  %44 = and i64 %39, %18
  %45 = trunc i64 %44 to i32
  %46 = getelementptr inbounds nuw i8, ptr %17, i32 %45
  %47 = load i32, ptr %46, align 4
  %48 = call i32 @llvm.bswap.i32(i32 %47)
  %49 = icmp sgt i32 %48, -1
  br i1 %49, label %50, label %66
50:
  %51 = icmp samesign ult i32 %48, 1073741824
  br i1 %51, label %52, label %57
52:
  %53 = load i64, ptr %19, align 8
  %54 = call i64 @llvm.bswap.i64(i64 %53)
  %55 = add i64 %54, 1
  %56 = call i64 @llvm.bswap.i64(i64 %55)
  store i64 %56, ptr %19, align 8
  br label %57
57:
  %58 = and i32 %48, 1073741823
  %59 = add nuw nsw i32 %58, 15
  %60 = and i32 %59, 2147483640
  %61 = zext nneg i32 %60 to i64
  %62 = add i64 %39, %61
  %63 = call i64 @llvm.bswap.i64(i64 %62)
  store i64 %63, ptr %7, align 8
  %64 = sub i64 %13, %62
  %65 = icmp ugt i64 %64, %3
  br i1 %65, label %38, label %24
66:
  %67 = getelementptr inbounds nuw i8, ptr %7, i32 24
  %68 = load i64, ptr %67, align 8
  %69 = call i64 @llvm.bswap.i64(i64 %68)
  %70 = add i64 %69, 1
  %71 = call i64 @llvm.bswap.i64(i64 %70)
  store i64 %71, ptr %67, align 8
  br label %72
72:
  %73 = phi i64 [ %37, %24 ], [ 0, %66 ]
  ret i64 %73
}

define internal void @commit(i64 %0, i32 %1) #0 {
  %3 = trunc i64 %0 to i32
  %4 = add i32 %3, -8
  %5 = inttoptr i32 %4 to ptr
  %6 = load i32, ptr %5, align 4
  %7 = and i32 %6, -129
  %8 = call i32 @llvm.bswap.i32(i32 %1)
  %9 = or i32 %7, %8
  store i32 %9, ptr %5, align 4
  ret void
}

define internal i64 @table_next(i64 %0, ptr %1, i32 %2, i32 %3, i32 %4, i32 %5, i32 %6) #1 {
  %8 = trunc i64 %0 to i32
  %9 = inttoptr i32 %8 to ptr
  %10 = getelementptr inbounds nuw i8, ptr %9, i32 16
  %11 = load i64, ptr %10, align 8
  %12 = call i64 @llvm.bswap.i64(i64 %11)
  %13 = zext i32 %6 to i64
  %14 = call i64 @llvm.umin.i64(i64 %12, i64 %13)
  %15 = trunc nuw i64 %14 to i32
  %16 = icmp ult i32 %2, %15
  br i1 %16, label %17, label %64
17:
  %18 = add i32 %4, %8
  br label %19
19:
  %20 = phi i32 [ %2, %17 ], [ %62, %61 ]
  %21 = mul i32 %20, %5
  %22 = add i32 %18, %21
  %23 = inttoptr i32 %22 to ptr
  %24 = getelementptr inbounds nuw i8, ptr %23, i32 4
  %25 = load i32, ptr %24, align 4
  %26 = icmp eq i32 %25, 0
  br i1 %26, label %61, label %27
27:
  %28 = getelementptr inbounds nuw i8, ptr %23, i32 8
  %29 = icmp eq i32 %3, 8
  br i1 %29, label %33, label %30
30:
  %31 = zext i32 %3 to i64
  %32 = icmp ugt i32 %3, 7
  br i1 %32, label %40, label %35
33:
  %34 = load i64, ptr %28, align 1
  store i64 %34, ptr %1, align 1
  br label %58
35:
  %36 = phi ptr [ %1, %30 ], [ %46, %40 ]
  %37 = phi ptr [ %28, %30 ], [ %47, %40 ]
  %38 = phi i64 [ %31, %30 ], [ %45, %40 ]
  %39 = icmp eq i64 %38, 0
  br i1 %39, label %58, label %49
40:
  %41 = phi i64 [ %45, %40 ], [ %31, %30 ]
  %42 = phi ptr [ %47, %40 ], [ %28, %30 ]
  %43 = phi ptr [ %46, %40 ], [ %1, %30 ]
  %44 = load i64, ptr %42, align 1
  store i64 %44, ptr %43, align 1
  %45 = add i64 %41, -8
  %46 = getelementptr inbounds nuw i8, ptr %43, i32 8
  %47 = getelementptr inbounds nuw i8, ptr %42, i32 8
  %48 = icmp ugt i64 %45, 7
  br i1 %48, label %40, label %35
49:
  %50 = phi i64 [ %56, %49 ], [ %38, %35 ]
  %51 = phi ptr [ %53, %49 ], [ %37, %35 ]
  %52 = phi ptr [ %55, %49 ], [ %36, %35 ]
  %53 = getelementptr inbounds nuw i8, ptr %51, i32 1
  %54 = load i8, ptr %51, align 1
  %55 = getelementptr inbounds nuw i8, ptr %52, i32 1
  store i8 %54, ptr %52, align 1
  %56 = add nsw i64 %50, -1
  %57 = icmp eq i64 %56, 0
  br i1 %57, label %58, label %49
58:
  %59 = zext i32 %20 to i64
  %60 = add nuw nsw i64 %59, 1
  br label %73
61:
  %62 = add i32 %20, 1
  %63 = icmp eq i32 %62, %15
  br i1 %63, label %64, label %19
64:
  %65 = zext i32 %3 to i64
  %66 = icmp eq i32 %3, 0
  br i1 %66, label %73, label %67
67:
  %68 = phi i64 [ %71, %67 ], [ 0, %64 ]
  %69 = trunc nuw i64 %68 to i32
  %70 = getelementptr inbounds nuw i8, ptr %1, i32 %69
  store volatile i8 0, ptr %70, align 1
  %71 = add nuw nsw i64 %68, 1
  %72 = icmp samesign ult i64 %71, %65
  br i1 %72, label %67, label %73
73:
  %74 = phi i64 [ %60, %58 ], [ 0, %64 ], [ 0, %67 ]
  ret i64 %74
}

define internal void @table_key(ptr %0, ptr %1, i64 %2) #0 {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %14, label %5
5:
  %6 = phi i64 [ %12, %5 ], [ 0, %3 ]
  %7 = trunc i64 %6 to i32
  %8 = getelementptr inbounds nuw %struct.unaligned, ptr %1, i32 %7
  %9 = load i64, ptr %8, align 1
  %10 = call i64 @llvm.bswap.i64(i64 %9)
  %11 = getelementptr inbounds nuw i64, ptr %0, i32 %7
  store i64 %10, ptr %11, align 8
  %12 = add nuw i64 %6, 1
  %13 = icmp ult i64 %12, %2
  br i1 %13, label %5, label %14
14:
  ret void
}

define internal i64 @table_find(i64 %0, ptr %1, ptr %2, i64 %3, i32 %4, i32 %5, i32 %6, i32 %7, i32 %8) #1 {
  %10 = icmp eq i32 %4, 0
  %11 = lshr i64 %3, 32
  %12 = trunc nuw i64 %11 to i32
  br i1 %10, label %82, label %13
13:
  %14 = load i64, ptr %1, align 8
  %15 = xor i64 %14, %3
  %16 = mul i64 %15, -7046029254386353131
  %17 = lshr i64 %16, 29
  %18 = xor i64 %17, %16
  %19 = icmp eq i32 %4, 1
  %20 = lshr i64 %18, 32
  %21 = trunc nuw i64 %20 to i32
  br i1 %19, label %82, label %22
22:
  %23 = getelementptr inbounds nuw i8, ptr %1, i32 8
  %24 = load i64, ptr %23, align 8
  %25 = xor i64 %24, %18
  %26 = mul i64 %25, -7046029254386353131
  %27 = lshr i64 %26, 29
  %28 = xor i64 %27, %26
  %29 = icmp ugt i32 %4, 2
  %30 = lshr i64 %28, 32
  %31 = trunc nuw i64 %30 to i32
  br i1 %29, label %32, label %82
32:
  %33 = getelementptr inbounds nuw i8, ptr %1, i32 16
  %34 = load i64, ptr %33, align 8
  %35 = xor i64 %34, %28
  %36 = mul i64 %35, -7046029254386353131
  %37 = lshr i64 %36, 29
  %38 = xor i64 %37, %36
  %39 = icmp eq i32 %4, 3
  %40 = lshr i64 %38, 32
  %41 = trunc nuw i64 %40 to i32
  br i1 %39, label %82, label %42
42:
  %43 = getelementptr inbounds nuw i8, ptr %1, i32 24
  %44 = load i64, ptr %43, align 8
  %45 = xor i64 %44, %38
  %46 = mul i64 %45, -7046029254386353131
  %47 = lshr i64 %46, 29
  %48 = xor i64 %47, %46
  %49 = icmp ugt i32 %4, 4
  %50 = lshr i64 %48, 32
  %51 = trunc nuw i64 %50 to i32
  br i1 %49, label %52, label %82
52:
  %53 = getelementptr inbounds nuw i8, ptr %1, i32 32
  %54 = load i64, ptr %53, align 8
  %55 = xor i64 %54, %48
  %56 = mul i64 %55, -7046029254386353131
  %57 = lshr i64 %56, 29
  %58 = xor i64 %57, %56
  %59 = icmp eq i32 %4, 5
  %60 = lshr i64 %58, 32
  %61 = trunc nuw i64 %60 to i32
  br i1 %59, label %82, label %62
62:
  %63 = getelementptr inbounds nuw i8, ptr %1, i32 40
  %64 = load i64, ptr %63, align 8
  %65 = xor i64 %64, %58
  %66 = mul i64 %65, -7046029254386353131
  %67 = lshr i64 %66, 29
  %68 = xor i64 %67, %66
  %69 = icmp ugt i32 %4, 6
  %70 = lshr i64 %68, 32
  %71 = trunc nuw i64 %70 to i32
  br i1 %69, label %72, label %82
72:
  %73 = getelementptr inbounds nuw i8, ptr %1, i32 48
  %74 = load i64, ptr %73, align 8
  %75 = xor i64 %74, %68
  %76 = mul i64 %75, -7046029254386353131
  %77 = lshr i64 %76, 29
  %78 = xor i64 %77, %76
  %79 = icmp eq i32 %4, 7
  %80 = lshr i64 %78, 32
  %81 = trunc nuw i64 %80 to i32
  br i1 %79, label %82, label %91
82:
  %83 = phi i1 [ true, %72 ], [ true, %62 ], [ false, %42 ], [ false, %22 ], [ false, %13 ], [ false, %9 ], [ false, %32 ], [ false, %52 ]
  %84 = phi i1 [ true, %72 ], [ true, %62 ], [ true, %42 ], [ false, %22 ], [ false, %13 ], [ false, %9 ], [ false, %32 ], [ true, %52 ]
  %85 = phi i1 [ true, %72 ], [ true, %62 ], [ true, %42 ], [ true, %22 ], [ false, %13 ], [ false, %9 ], [ true, %32 ], [ true, %52 ]
  %86 = phi i1 [ true, %72 ], [ true, %62 ], [ true, %42 ], [ false, %22 ], [ false, %13 ], [ false, %9 ], [ true, %32 ], [ true, %52 ]
  %87 = phi i1 [ true, %72 ], [ true, %62 ], [ false, %42 ], [ false, %22 ], [ false, %13 ], [ false, %9 ], [ false, %32 ], [ true, %52 ]
  %88 = phi i1 [ true, %72 ], [ false, %62 ], [ false, %42 ], [ false, %22 ], [ false, %13 ], [ false, %9 ], [ false, %32 ], [ false, %52 ]
  %89 = phi i32 [ %81, %72 ], [ %71, %62 ], [ %51, %42 ], [ %31, %22 ], [ %21, %13 ], [ %12, %9 ], [ %41, %32 ], [ %61, %52 ]
  %90 = trunc i64 %0 to i32
  br label %116
91:
  %92 = getelementptr inbounds nuw i8, ptr %1, i32 56
  %93 = load i64, ptr %92, align 8
  %94 = xor i64 %93, %78
  %95 = mul i64 %94, -7046029254386353131
  %96 = lshr i64 %95, 29
  %97 = xor i64 %96, %95
  %98 = trunc i64 %0 to i32
  %99 = icmp ugt i32 %4, 8
  %100 = lshr i64 %97, 32
  %101 = trunc nuw i64 %100 to i32
  br i1 %99, label %102, label %116
102:
  %103 = phi i64 [ %110, %102 ], [ %97, %91 ]
  %104 = phi i32 [ %111, %102 ], [ 8, %91 ]
  %105 = getelementptr inbounds nuw i64, ptr %1, i32 %104
  %106 = load i64, ptr %105, align 8
  %107 = xor i64 %106, %103
  %108 = mul i64 %107, -7046029254386353131
  %109 = lshr i64 %108, 29
  %110 = xor i64 %109, %108
  %111 = add nuw i32 %104, 1
  %112 = icmp eq i32 %111, %4
  br i1 %112, label %113, label %102
113:
  %114 = lshr i64 %110, 32
  %115 = trunc nuw i64 %114 to i32
  br label %116
116:
  %117 = phi i1 [ false, %91 ], [ true, %113 ], [ false, %82 ]
  %118 = phi i32 [ %98, %91 ], [ %98, %113 ], [ %90, %82 ]
  %119 = phi i1 [ true, %91 ], [ true, %113 ], [ %88, %82 ]
  %120 = phi i1 [ true, %91 ], [ true, %113 ], [ %87, %82 ]
  %121 = phi i1 [ true, %91 ], [ true, %113 ], [ %86, %82 ]
  %122 = phi i1 [ true, %91 ], [ true, %113 ], [ %85, %82 ]
  %123 = phi i1 [ true, %91 ], [ true, %113 ], [ %84, %82 ]
  %124 = phi i1 [ true, %91 ], [ true, %113 ], [ %83, %82 ]
  %125 = phi i1 [ true, %91 ], [ true, %113 ], [ false, %82 ]
  %126 = phi i32 [ %101, %91 ], [ %115, %113 ], [ %89, %82 ]
  %127 = inttoptr i32 %118 to ptr
  %128 = and i32 %126, %5
  %129 = getelementptr inbounds nuw i8, ptr %2, i32 4
  store i32 %128, ptr %129, align 4
  %130 = getelementptr inbounds nuw i8, ptr %127, i32 64
  %131 = add i32 %6, %118
  %132 = getelementptr inbounds nuw i8, ptr %1, i32 8
  %133 = getelementptr inbounds nuw i8, ptr %1, i32 16
  %134 = getelementptr inbounds nuw i8, ptr %1, i32 24
  %135 = getelementptr inbounds nuw i8, ptr %1, i32 32
  %136 = getelementptr inbounds nuw i8, ptr %1, i32 40
  %137 = getelementptr inbounds nuw i8, ptr %1, i32 48
  %138 = getelementptr inbounds nuw i8, ptr %1, i32 56
  br label %139
139:
  %140 = phi i32 [ %128, %116 ], [ %245, %243 ]
  %141 = getelementptr inbounds nuw i32, ptr %130, i32 %140
  %142 = load i32, ptr %141, align 4
  %143 = icmp eq i32 %142, 0
  br i1 %143, label %144, label %145
144:
  store i32 %140, ptr %2, align 4
  br label %248
145:
  %146 = call i32 @llvm.bswap.i32(i32 %142)
  %147 = add i32 %146, -1
  %148 = icmp ult i32 %147, %8
  br i1 %148, label %149, label %243
149:
  %150 = mul i32 %147, %7
  %151 = add i32 %131, %150
  %152 = inttoptr i32 %151 to ptr
  %153 = getelementptr inbounds nuw i8, ptr %152, i32 8
  br i1 %10, label %160, label %154
154:
  %155 = load i64, ptr %153, align 8
  %156 = call i64 @llvm.bswap.i64(i64 %155)
  %157 = load i64, ptr %1, align 8
  %158 = icmp eq i64 %156, %157
  %159 = zext i1 %158 to i32
  br label %160
160:
  %161 = phi i32 [ %159, %154 ], [ 1, %149 ]
  br i1 %122, label %162, label %169
162:
  %163 = getelementptr inbounds nuw i8, ptr %152, i32 16
  %164 = load i64, ptr %163, align 8
  %165 = call i64 @llvm.bswap.i64(i64 %164)
  %166 = load i64, ptr %132, align 8
  %167 = icmp eq i64 %165, %166
  %168 = select i1 %167, i32 %161, i32 0
  br label %169
169:
  %170 = phi i32 [ %168, %162 ], [ %161, %160 ]
  br i1 %121, label %171, label %178
171:
  %172 = getelementptr inbounds nuw i8, ptr %152, i32 24
  %173 = load i64, ptr %172, align 8
  %174 = call i64 @llvm.bswap.i64(i64 %173)
  %175 = load i64, ptr %133, align 8
  %176 = icmp eq i64 %174, %175
  %177 = select i1 %176, i32 %170, i32 0
  br label %178
178:
  %179 = phi i32 [ %177, %171 ], [ %170, %169 ]
  br i1 %123, label %180, label %187
180:
  %181 = getelementptr inbounds nuw i8, ptr %152, i32 32
  %182 = load i64, ptr %181, align 8
  %183 = call i64 @llvm.bswap.i64(i64 %182)
  %184 = load i64, ptr %134, align 8
  %185 = icmp eq i64 %183, %184
  %186 = select i1 %185, i32 %179, i32 0
  br label %187
187:
  %188 = phi i32 [ %186, %180 ], [ %179, %178 ]
  br i1 %120, label %189, label %196
189:
  %190 = getelementptr inbounds nuw i8, ptr %152, i32 40
  %191 = load i64, ptr %190, align 8
  %192 = call i64 @llvm.bswap.i64(i64 %191)
  %193 = load i64, ptr %135, align 8
  %194 = icmp eq i64 %192, %193
  %195 = select i1 %194, i32 %188, i32 0
  br label %196
196:
  %197 = phi i32 [ %195, %189 ], [ %188, %187 ]
  br i1 %124, label %198, label %205
198:
  %199 = getelementptr inbounds nuw i8, ptr %152, i32 48
  %200 = load i64, ptr %199, align 8
  %201 = call i64 @llvm.bswap.i64(i64 %200)
  %202 = load i64, ptr %136, align 8
  %203 = icmp eq i64 %201, %202
  %204 = select i1 %203, i32 %197, i32 0
  br label %205
205:
  %206 = phi i32 [ %204, %198 ], [ %197, %196 ]
  br i1 %119, label %207, label %214
207:
  %208 = getelementptr inbounds nuw i8, ptr %152, i32 56
  %209 = load i64, ptr %208, align 8
  %210 = call i64 @llvm.bswap.i64(i64 %209)
  %211 = load i64, ptr %137, align 8
  %212 = icmp eq i64 %210, %211
  %213 = select i1 %212, i32 %206, i32 0
  br label %214
214:
  %215 = phi i32 [ %213, %207 ], [ %206, %205 ]
  br i1 %125, label %216, label %223
216:
  %217 = getelementptr inbounds nuw i8, ptr %152, i32 64
  %218 = load i64, ptr %217, align 8
  %219 = call i64 @llvm.bswap.i64(i64 %218)
  %220 = load i64, ptr %138, align 8
  %221 = icmp eq i64 %219, %220
  %222 = select i1 %221, i32 %215, i32 0
  br label %223
223:
  %224 = phi i32 [ %222, %216 ], [ %215, %214 ]
  %225 = icmp ne i32 %224, 0
  %226 = select i1 %117, i1 %225, i1 false
  br i1 %226, label %227, label %238
227:
  %228 = phi i32 [ %235, %227 ], [ 8, %223 ]
  %229 = getelementptr inbounds nuw i64, ptr %153, i32 %228
  %230 = load i64, ptr %229, align 8
  %231 = call i64 @llvm.bswap.i64(i64 %230)
  %232 = getelementptr inbounds nuw i64, ptr %1, i32 %228
  %233 = load i64, ptr %232, align 8
  %234 = icmp eq i64 %231, %233
  %235 = add nuw i32 %228, 1
  %236 = icmp ult i32 %235, %4
  %237 = select i1 %236, i1 %234, i1 false
  br i1 %237, label %227, label %238
238:
  %239 = phi i1 [ %225, %223 ], [ %234, %227 ]
  br i1 %239, label %240, label %243
240:
  store i32 %140, ptr %2, align 4
  %241 = getelementptr inbounds nuw i8, ptr %2, i32 8
  store i32 %147, ptr %241, align 4
  %242 = zext i32 %151 to i64
  br label %248
243:
  %244 = add i32 %140, 1
  %245 = and i32 %244, %5
  %246 = icmp eq i32 %245, %128
  br i1 %246, label %247, label %139
247:
  store i32 -1, ptr %2, align 4
  br label %248
248:
  %249 = phi i64 [ %242, %240 ], [ 0, %247 ], [ 0, %144 ]
  ret i64 %249
}

define internal i64 @table_insert(i64 %0, ptr %1, ptr %2, i32 %3, i32 %4, i32 %5, i32 %6, i32 %7) #1 {
  %9 = trunc i64 %0 to i32
  %10 = inttoptr i32 %9 to ptr
  %11 = getelementptr inbounds nuw i8, ptr %10, i32 8
  %12 = load i64, ptr %11, align 8
  %13 = call i64 @llvm.bswap.i64(i64 %12)
  %14 = load i32, ptr %2, align 4
  %15 = icmp eq i32 %14, -1
  br i1 %15, label %284, label %16
16:
  %17 = icmp eq i64 %12, 0
  br i1 %17, label %33, label %18
18:
  %19 = add i64 %13, -1
  %20 = zext i32 %7 to i64
  %21 = icmp ult i64 %19, %20
  br i1 %21, label %22, label %284
22:
  %23 = trunc nuw i64 %13 to i32
  %24 = add i32 %23, -1
  %25 = add i32 %5, %9
  %26 = mul i32 %24, %6
  %27 = add i32 %25, %26
  %28 = inttoptr i32 %27 to ptr
  %29 = load i32, ptr %28, align 8
  %30 = call i32 @llvm.bswap.i32(i32 %29)
  %31 = zext i32 %30 to i64
  %32 = call i64 @llvm.bswap.i64(i64 %31)
  store i64 %32, ptr %11, align 8
  br label %48
33:
  %34 = getelementptr inbounds nuw i8, ptr %10, i32 16
  %35 = load i64, ptr %34, align 8
  %36 = call i64 @llvm.bswap.i64(i64 %35)
  %37 = zext i32 %7 to i64
  %38 = icmp ult i64 %36, %37
  br i1 %38, label %39, label %284
39:
  %40 = trunc nuw i64 %36 to i32
  %41 = add i32 %5, %9
  %42 = mul i32 %6, %40
  %43 = add i32 %41, %42
  %44 = inttoptr i32 %43 to ptr
  %45 = add nuw nsw i64 %36, 1
  %46 = call i64 @llvm.bswap.i64(i64 %45)
  store i64 %46, ptr %34, align 8
  %47 = add nuw i32 %40, 1
  br label %48
48:
  %49 = phi ptr [ %28, %22 ], [ %44, %39 ]
  %50 = phi i32 [ %23, %22 ], [ %47, %39 ]
  %51 = getelementptr inbounds nuw i8, ptr %2, i32 4
  %52 = load i32, ptr %51, align 4
  %53 = call i32 @llvm.bswap.i32(i32 %52)
  store i32 %53, ptr %49, align 8
  %54 = getelementptr inbounds nuw i8, ptr %49, i32 4
  store i32 16777216, ptr %54, align 4
  %55 = getelementptr inbounds nuw i8, ptr %49, i32 8
  %56 = icmp ugt i32 %6, 8
  br i1 %56, label %61, label %273
57:
  %58 = add i32 %6, -137
  %59 = lshr i32 %58, 3
  %60 = add nuw nsw i32 %59, 16
  br label %261
61:
  %62 = icmp eq i32 %3, 0
  br i1 %62, label %67, label %63
63:
  %64 = load i64, ptr %1, align 8
  %65 = call i64 @llvm.bswap.i64(i64 %64)
  store i64 %65, ptr %55, align 8
  %66 = icmp ugt i32 %6, 16
  br i1 %66, label %69, label %273
67:
  store i64 0, ptr %55, align 8
  %68 = icmp ugt i32 %6, 16
  br i1 %68, label %79, label %273
69:
  %70 = icmp eq i32 %3, 1
  br i1 %70, label %75, label %71
71:
  %72 = getelementptr inbounds nuw i8, ptr %1, i32 8
  %73 = load i64, ptr %72, align 8
  %74 = call i64 @llvm.bswap.i64(i64 %73)
  br label %75
75:
  %76 = phi i64 [ %74, %71 ], [ 0, %69 ]
  %77 = getelementptr inbounds nuw i8, ptr %49, i32 16
  store i64 %76, ptr %77, align 8
  %78 = icmp ugt i32 %6, 24
  br i1 %78, label %82, label %273
79:
  %80 = getelementptr inbounds nuw i8, ptr %49, i32 16
  store i64 0, ptr %80, align 8
  %81 = icmp ugt i32 %6, 24
  br i1 %81, label %92, label %273
82:
  %83 = icmp ugt i32 %3, 2
  br i1 %83, label %84, label %88
84:
  %85 = getelementptr inbounds nuw i8, ptr %1, i32 16
  %86 = load i64, ptr %85, align 8
  %87 = call i64 @llvm.bswap.i64(i64 %86)
  br label %88
88:
  %89 = phi i64 [ %87, %84 ], [ 0, %82 ]
  %90 = getelementptr inbounds nuw i8, ptr %49, i32 24
  store i64 %89, ptr %90, align 8
  %91 = icmp ugt i32 %6, 32
  br i1 %91, label %95, label %273
92:
  %93 = getelementptr inbounds nuw i8, ptr %49, i32 24
  store i64 0, ptr %93, align 8
  %94 = icmp ugt i32 %6, 32
  br i1 %94, label %105, label %273
95:
  %96 = icmp ugt i32 %3, 3
  br i1 %96, label %97, label %101
97:
  %98 = getelementptr inbounds nuw i8, ptr %1, i32 24
  %99 = load i64, ptr %98, align 8
  %100 = call i64 @llvm.bswap.i64(i64 %99)
  br label %101
101:
  %102 = phi i64 [ %100, %97 ], [ 0, %95 ]
  %103 = getelementptr inbounds nuw i8, ptr %49, i32 32
  store i64 %102, ptr %103, align 8
  %104 = icmp ugt i32 %6, 40
  br i1 %104, label %108, label %273
105:
  %106 = getelementptr inbounds nuw i8, ptr %49, i32 32
  store i64 0, ptr %106, align 8
  %107 = icmp ugt i32 %6, 40
  br i1 %107, label %118, label %273
108:
  %109 = icmp ugt i32 %3, 4
  br i1 %109, label %110, label %114
110:
  %111 = getelementptr inbounds nuw i8, ptr %1, i32 32
  %112 = load i64, ptr %111, align 8
  %113 = call i64 @llvm.bswap.i64(i64 %112)
  br label %114
114:
  %115 = phi i64 [ %113, %110 ], [ 0, %108 ]
  %116 = getelementptr inbounds nuw i8, ptr %49, i32 40
  store i64 %115, ptr %116, align 8
  %117 = icmp ugt i32 %6, 48
  br i1 %117, label %121, label %273
118:
  %119 = getelementptr inbounds nuw i8, ptr %49, i32 40
  store i64 0, ptr %119, align 8
  %120 = icmp ugt i32 %6, 48
  br i1 %120, label %131, label %273
121:
  %122 = icmp ugt i32 %3, 5
  br i1 %122, label %123, label %127
123:
  %124 = getelementptr inbounds nuw i8, ptr %1, i32 40
  %125 = load i64, ptr %124, align 8
  %126 = call i64 @llvm.bswap.i64(i64 %125)
  br label %127
127:
  %128 = phi i64 [ %126, %123 ], [ 0, %121 ]
  %129 = getelementptr inbounds nuw i8, ptr %49, i32 48
  store i64 %128, ptr %129, align 8
  %130 = icmp ugt i32 %6, 56
  br i1 %130, label %134, label %273
131:
  %132 = getelementptr inbounds nuw i8, ptr %49, i32 48
  store i64 0, ptr %132, align 8
  %133 = icmp ugt i32 %6, 56
  br i1 %133, label %144, label %273
134:
  %135 = icmp ugt i32 %3, 6
  br i1 %135, label %136, label %140
136:
  %137 = getelementptr inbounds nuw i8, ptr %1, i32 48
  %138 = load i64, ptr %137, align 8
  %139 = call i64 @llvm.bswap.i64(i64 %138)
  br label %140
140:
  %141 = phi i64 [ %139, %136 ], [ 0, %134 ]
  %142 = getelementptr inbounds nuw i8, ptr %49, i32 56
  store i64 %141, ptr %142, align 8
  %143 = icmp ugt i32 %6, 64
  br i1 %143, label %147, label %273
144:
  %145 = getelementptr inbounds nuw i8, ptr %49, i32 56
  store i64 0, ptr %145, align 8
  %146 = icmp ugt i32 %6, 64
  br i1 %146, label %157, label %273
147:
  %148 = icmp ugt i32 %3, 7
  br i1 %148, label %149, label %153
149:
  %150 = getelementptr inbounds nuw i8, ptr %1, i32 56
  %151 = load i64, ptr %150, align 8
  %152 = call i64 @llvm.bswap.i64(i64 %151)
  br label %153
153:
  %154 = phi i64 [ %152, %149 ], [ 0, %147 ]
  %155 = getelementptr inbounds nuw i8, ptr %49, i32 64
  store i64 %154, ptr %155, align 8
  %156 = icmp ugt i32 %6, 72
  br i1 %156, label %160, label %273
157:
  %158 = getelementptr inbounds nuw i8, ptr %49, i32 64
  store i64 0, ptr %158, align 8
  %159 = icmp ugt i32 %6, 72
  br i1 %159, label %170, label %273
160:
  %161 = icmp ugt i32 %3, 8
  br i1 %161, label %162, label %166
162:
  %163 = getelementptr inbounds nuw i8, ptr %1, i32 64
  %164 = load i64, ptr %163, align 8
  %165 = call i64 @llvm.bswap.i64(i64 %164)
  br label %166
166:
  %167 = phi i64 [ %165, %162 ], [ 0, %160 ]
  %168 = getelementptr inbounds nuw i8, ptr %49, i32 72
  store i64 %167, ptr %168, align 8
  %169 = icmp ugt i32 %6, 80
  br i1 %169, label %173, label %273
170:
  %171 = getelementptr inbounds nuw i8, ptr %49, i32 72
  store i64 0, ptr %171, align 8
  %172 = icmp ugt i32 %6, 80
  br i1 %172, label %183, label %273
173:
  %174 = icmp ugt i32 %3, 9
  br i1 %174, label %175, label %179
175:
  %176 = getelementptr inbounds nuw i8, ptr %1, i32 72
  %177 = load i64, ptr %176, align 8
  %178 = call i64 @llvm.bswap.i64(i64 %177)
  br label %179
179:
  %180 = phi i64 [ %178, %175 ], [ 0, %173 ]
  %181 = getelementptr inbounds nuw i8, ptr %49, i32 80
  store i64 %180, ptr %181, align 8
  %182 = icmp ugt i32 %6, 88
  br i1 %182, label %186, label %273
183:
  %184 = getelementptr inbounds nuw i8, ptr %49, i32 80
  store i64 0, ptr %184, align 8
  %185 = icmp ugt i32 %6, 88
  br i1 %185, label %196, label %273
186:
  %187 = icmp ugt i32 %3, 10
  br i1 %187, label %188, label %192
188:
  %189 = getelementptr inbounds nuw i8, ptr %1, i32 80
  %190 = load i64, ptr %189, align 8
  %191 = call i64 @llvm.bswap.i64(i64 %190)
  br label %192
192:
  %193 = phi i64 [ %191, %188 ], [ 0, %186 ]
  %194 = getelementptr inbounds nuw i8, ptr %49, i32 88
  store i64 %193, ptr %194, align 8
  %195 = icmp ugt i32 %6, 96
  br i1 %195, label %199, label %273
196:
  %197 = getelementptr inbounds nuw i8, ptr %49, i32 88
  store i64 0, ptr %197, align 8
  %198 = icmp ugt i32 %6, 96
  br i1 %198, label %209, label %273
199:
  %200 = icmp ugt i32 %3, 11
  br i1 %200, label %201, label %205
201:
  %202 = getelementptr inbounds nuw i8, ptr %1, i32 88
  %203 = load i64, ptr %202, align 8
  %204 = call i64 @llvm.bswap.i64(i64 %203)
  br label %205
205:
  %206 = phi i64 [ %204, %201 ], [ 0, %199 ]
  %207 = getelementptr inbounds nuw i8, ptr %49, i32 96
  store i64 %206, ptr %207, align 8
  %208 = icmp ugt i32 %6, 104
  br i1 %208, label %212, label %273
209:
  %210 = getelementptr inbounds nuw i8, ptr %49, i32 96
  store i64 0, ptr %210, align 8
  %211 = icmp ugt i32 %6, 104
  br i1 %211, label %222, label %273
212:
  %213 = icmp ugt i32 %3, 12
  br i1 %213, label %214, label %218
214:
  %215 = getelementptr inbounds nuw i8, ptr %1, i32 96
  %216 = load i64, ptr %215, align 8
  %217 = call i64 @llvm.bswap.i64(i64 %216)
  br label %218
218:
  %219 = phi i64 [ %217, %214 ], [ 0, %212 ]
  %220 = getelementptr inbounds nuw i8, ptr %49, i32 104
  store i64 %219, ptr %220, align 8
  %221 = icmp ugt i32 %6, 112
  br i1 %221, label %225, label %273
222:
  %223 = getelementptr inbounds nuw i8, ptr %49, i32 104
  store i64 0, ptr %223, align 8
  %224 = icmp ugt i32 %6, 112
  br i1 %224, label %235, label %273
225:
  %226 = icmp ugt i32 %3, 13
  br i1 %226, label %227, label %231
227:
  %228 = getelementptr inbounds nuw i8, ptr %1, i32 104
  %229 = load i64, ptr %228, align 8
  %230 = call i64 @llvm.bswap.i64(i64 %229)
  br label %231
231:
  %232 = phi i64 [ %230, %227 ], [ 0, %225 ]
  %233 = getelementptr inbounds nuw i8, ptr %49, i32 112
  store i64 %232, ptr %233, align 8
  %234 = icmp ugt i32 %6, 120
  br i1 %234, label %238, label %273
235:
  %236 = getelementptr inbounds nuw i8, ptr %49, i32 112
  store i64 0, ptr %236, align 8
  %237 = icmp ugt i32 %6, 120
  br i1 %237, label %248, label %273
238:
  %239 = icmp ugt i32 %3, 14
  br i1 %239, label %240, label %244
240:
  %241 = getelementptr inbounds nuw i8, ptr %1, i32 112
  %242 = load i64, ptr %241, align 8
  %243 = call i64 @llvm.bswap.i64(i64 %242)
  br label %244
244:
  %245 = phi i64 [ %243, %240 ], [ 0, %238 ]
  %246 = getelementptr inbounds nuw i8, ptr %49, i32 120
  store i64 %245, ptr %246, align 8
  %247 = icmp ugt i32 %6, 128
  br i1 %247, label %251, label %273
248:
  %249 = getelementptr inbounds nuw i8, ptr %49, i32 120
  store i64 0, ptr %249, align 8
  %250 = icmp ugt i32 %6, 128
  br i1 %250, label %257, label %273
251:
  %252 = icmp ugt i32 %3, 15
  br i1 %252, label %253, label %257
253:
  %254 = getelementptr inbounds nuw i8, ptr %1, i32 120
  %255 = load i64, ptr %254, align 8
  %256 = call i64 @llvm.bswap.i64(i64 %255)
  br label %257
257:
  %258 = phi i64 [ %256, %253 ], [ 0, %251 ], [ 0, %248 ]
  %259 = getelementptr inbounds nuw i8, ptr %49, i32 128
  store i64 %258, ptr %259, align 8
  %260 = icmp ugt i32 %6, 136
  br i1 %260, label %57, label %273
261:
  %262 = phi i32 [ 16, %57 ], [ %271, %268 ]
  %263 = icmp ult i32 %262, %3
  br i1 %263, label %264, label %268
264:
  %265 = getelementptr inbounds nuw i64, ptr %1, i32 %262
  %266 = load i64, ptr %265, align 8
  %267 = call i64 @llvm.bswap.i64(i64 %266)
  br label %268
268:
  %269 = phi i64 [ %267, %264 ], [ 0, %261 ]
  %270 = getelementptr inbounds nuw i64, ptr %55, i32 %262
  store i64 %269, ptr %270, align 8
  %271 = add nuw nsw i32 %262, 1
  %272 = icmp eq i32 %262, %60
  br i1 %272, label %273, label %261
273:
  %274 = call i32 @llvm.bswap.i32(i32 %50)
  %275 = getelementptr inbounds nuw i8, ptr %10, i32 64
  %276 = load i32, ptr %2, align 4
  %277 = getelementptr inbounds nuw i32, ptr %275, i32 %276
  store i32 %274, ptr %277, align 4
  %278 = load i64, ptr %10, align 8
  %279 = call i64 @llvm.bswap.i64(i64 %278)
  %280 = add i64 %279, 1
  %281 = call i64 @llvm.bswap.i64(i64 %280)
  store i64 %281, ptr %10, align 8
  %282 = ptrtoint ptr %49 to i32
  %283 = zext i32 %282 to i64
  br label %284
284:
  %285 = phi i64 [ 0, %18 ], [ 0, %8 ], [ %283, %273 ], [ 0, %33 ]
  ret i64 %285
}

define internal void @table_remove(i64 %0, ptr %1, i32 %2, i32 %3, i32 %4, i32 %5, i32 %6) #1 {
  %8 = trunc i64 %0 to i32
  %9 = inttoptr i32 %8 to ptr
  %10 = getelementptr inbounds nuw i8, ptr %1, i32 8
  %11 = load i32, ptr %10, align 4
  %12 = add i32 %4, %8
  %13 = mul i32 %11, %5
  %14 = add i32 %13, %12
  %15 = inttoptr i32 %14 to ptr
  %16 = load i32, ptr %1, align 4
  %17 = getelementptr inbounds nuw i8, ptr %9, i32 8
  %18 = load i64, ptr %17, align 8
  %19 = lshr i64 %18, 32
  %20 = trunc nuw i64 %19 to i32
  store i32 %20, ptr %15, align 8
  %21 = getelementptr inbounds nuw i8, ptr %15, i32 4
  store i32 0, ptr %21, align 4
  %22 = load i32, ptr %10, align 4
  %23 = zext i32 %22 to i64
  %24 = add nuw nsw i64 %23, 1
  %25 = call i64 @llvm.bswap.i64(i64 %24)
  store i64 %25, ptr %17, align 8
  %26 = load i64, ptr %9, align 8
  %27 = call i64 @llvm.bswap.i64(i64 %26)
  %28 = add i64 %27, -1
  %29 = call i64 @llvm.bswap.i64(i64 %28)
  store i64 %29, ptr %9, align 8
  %30 = getelementptr inbounds nuw i8, ptr %9, i32 64
  %31 = add i32 %16, 1
  %32 = and i32 %31, %3
  %33 = load i32, ptr %1, align 4
  %34 = icmp eq i32 %32, %33
  br i1 %34, label %64, label %35
35:
  %36 = phi i32 [ %59, %58 ], [ %33, %7 ]
  %37 = phi i32 [ %62, %58 ], [ %32, %7 ]
  %38 = phi i32 [ %60, %58 ], [ %16, %7 ]
  %39 = getelementptr inbounds nuw i32, ptr %30, i32 %37
  %40 = load i32, ptr %39, align 4
  %41 = call i32 @llvm.bswap.i32(i32 %40)
  %42 = add i32 %41, -1
  %43 = icmp ult i32 %42, %6
  br i1 %43, label %44, label %64
44:
  %45 = mul i32 %42, %5
  %46 = add i32 %45, %12
  %47 = inttoptr i32 %46 to ptr
  %48 = load i32, ptr %47, align 8
  %49 = call i32 @llvm.bswap.i32(i32 %48)
  %50 = sub i32 %37, %49
  %51 = and i32 %50, %3
  %52 = sub i32 %37, %38
  %53 = and i32 %52, %3
  %54 = icmp ult i32 %51, %53
  br i1 %54, label %58, label %55
55:
  %56 = getelementptr inbounds nuw i32, ptr %30, i32 %38
  store i32 %40, ptr %56, align 4
  %57 = load i32, ptr %1, align 4
  br label %58
58:
  %59 = phi i32 [ %57, %55 ], [ %36, %44 ]
  %60 = phi i32 [ %37, %55 ], [ %38, %44 ]
  %61 = add i32 %37, 1
  %62 = and i32 %61, %3
  %63 = icmp eq i32 %62, %59
  br i1 %63, label %64, label %35
64:
  %65 = phi i32 [ %16, %7 ], [ %38, %35 ], [ %60, %58 ]
  %66 = getelementptr inbounds nuw i32, ptr %30, i32 %65
  store i32 0, ptr %66, align 4
  ret void
}
