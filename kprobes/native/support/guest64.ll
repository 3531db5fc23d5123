%struct.question = type { i64, i64, i64, i64 }
%struct.timespec = type { i64, i64 }
%struct.block = type { i64, i64, i64 }
%struct.unaligned = type { i64 }
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
  %11 = add i64 %10, %8
  %12 = icmp ugt i64 %8, %3
  br i1 %12, label %53, label %13
13:
  %14 = icmp eq i32 %4, 0
  %15 = getelementptr inbounds nuw i8, ptr %6, i64 64
  %16 = add i64 %3, -8
  %17 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %18 = load i64, ptr %6, align 8
  %19 = sub i64 %11, %18
  %20 = icmp ugt i64 %19, %3
  br i1 %20, label %30, label %21
21:
  %22 = and i64 %10, %16
  %23 = getelementptr inbounds nuw i8, ptr %15, i64 %22
  %24 = trunc i64 %1 to i32
  %25 = or i32 %24, -2147483648
  store i32 %25, ptr %23, align 4
  %26 = trunc i64 %2 to i32
  %27 = getelementptr inbounds nuw i8, ptr %23, i64 4
  store i32 %26, ptr %27, align 4
  store i64 %11, ptr %9, align 8
  %28 = getelementptr inbounds nuw i8, ptr %23, i64 8
  %29 = ptrtoint ptr %28 to i64
  br label %57
30:
  %31 = phi i64 [ %50, %45 ], [ %18, %13 ]
  %32 = sub i64 %10, %31
  %33 = icmp ugt i64 %32, %3
  %34 = select i1 %14, i1 true, i1 %33
  br i1 %34, label %53, label %35
35:
  %36 = and i64 %31, %16
  %37 = getelementptr inbounds nuw i8, ptr %15, i64 %36
  %38 = load i32, ptr %37, align 4
  %39 = icmp sgt i32 %38, -1
  br i1 %39, label %40, label %53
40:
  %41 = icmp samesign ult i32 %38, 1073741824
  br i1 %41, label %42, label %45
42:
  %43 = load i64, ptr %17, align 8
  %44 = add i64 %43, 1
  store i64 %44, ptr %17, align 8
  br label %45
45:
  %46 = and i32 %38, 1073741823
  %47 = add nuw nsw i32 %46, 15
  %48 = and i32 %47, 2147483640
  %49 = zext nneg i32 %48 to i64
  %50 = add i64 %31, %49
  store i64 %50, ptr %6, align 8
  %51 = sub i64 %11, %50
  %52 = icmp ugt i64 %51, %3
  br i1 %52, label %30, label %21
53:
  %54 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %55 = load i64, ptr %54, align 8
  %56 = add i64 %55, 1
  store i64 %56, ptr %54, align 8
  br label %57
57:
  %58 = phi i64 [ %29, %21 ], [ 0, %53 ]
  ret i64 %58
}

define internal void @commit(i64 %0, i32 %1) #0 {
  %3 = add i64 %0, -8
  %4 = inttoptr i64 %3 to ptr
  %5 = load i32, ptr %4, align 4
  %6 = and i32 %5, 2147483647
  %7 = or i32 %6, %1
  store i32 %7, ptr %4, align 4
  ret void
}

define internal i64 @table_next(i64 %0, ptr %1, i32 %2, i32 %3, i64 %4, i64 %5, i32 %6) #1 {
  %8 = inttoptr i64 %0 to ptr
  %9 = getelementptr inbounds nuw i8, ptr %8, i64 16
  %10 = load i64, ptr %9, align 8
  %11 = zext i32 %6 to i64
  %12 = call i64 @llvm.umin.i64(i64 %10, i64 %11)
  %13 = trunc nuw i64 %12 to i32
  %14 = icmp ult i32 %2, %13
  br i1 %14, label %15, label %63
15:
  %16 = add i64 %4, %0
  %17 = zext i32 %2 to i64
  br label %22
18:
  %19 = add nuw nsw i64 %23, 1
  %20 = trunc i64 %19 to i32
  %21 = icmp eq i32 %20, %13
  br i1 %21, label %63, label %22
22:
  %23 = phi i64 [ %17, %15 ], [ %19, %18 ]
  %24 = mul i64 %5, %23
  %25 = add i64 %16, %24
  %26 = inttoptr i64 %25 to ptr
  %27 = getelementptr inbounds nuw i8, ptr %26, i64 4
  %28 = load i32, ptr %27, align 4
  %29 = icmp eq i32 %28, 0
  br i1 %29, label %18, label %30
30:
  %31 = getelementptr inbounds nuw i8, ptr %26, i64 8
  %32 = icmp eq i32 %3, 8
  br i1 %32, label %36, label %33
33:
  %34 = zext i32 %3 to i64
  %35 = icmp ugt i32 %3, 7
  br i1 %35, label %43, label %38
36:
  %37 = load i64, ptr %31, align 1
  store i64 %37, ptr %1, align 1
  br label %61
38:
  %39 = phi ptr [ %1, %33 ], [ %49, %43 ]
  %40 = phi ptr [ %31, %33 ], [ %50, %43 ]
  %41 = phi i64 [ %34, %33 ], [ %48, %43 ]
  %42 = icmp eq i64 %41, 0
  br i1 %42, label %61, label %52
43:
  %44 = phi i64 [ %48, %43 ], [ %34, %33 ]
  %45 = phi ptr [ %50, %43 ], [ %31, %33 ]
  %46 = phi ptr [ %49, %43 ], [ %1, %33 ]
  %47 = load i64, ptr %45, align 1
  store i64 %47, ptr %46, align 1
  %48 = add i64 %44, -8
  %49 = getelementptr inbounds nuw i8, ptr %46, i64 8
  %50 = getelementptr inbounds nuw i8, ptr %45, i64 8
  %51 = icmp ugt i64 %48, 7
  br i1 %51, label %43, label %38
52:
  %53 = phi i64 [ %59, %52 ], [ %41, %38 ]
  %54 = phi ptr [ %56, %52 ], [ %40, %38 ]
  %55 = phi ptr [ %58, %52 ], [ %39, %38 ]
  %56 = getelementptr inbounds nuw i8, ptr %54, i64 1
  %57 = load i8, ptr %54, align 1
  %58 = getelementptr inbounds nuw i8, ptr %55, i64 1
  store i8 %57, ptr %55, align 1
  %59 = add nsw i64 %53, -1
  %60 = icmp eq i64 %59, 0
  br i1 %60, label %61, label %52
61:
  %62 = add nuw nsw i64 %23, 1
  br label %71
63:
  %64 = zext i32 %3 to i64
  %65 = icmp eq i32 %3, 0
  br i1 %65, label %71, label %66
66:
  %67 = phi i64 [ %69, %66 ], [ 0, %63 ]
  %68 = getelementptr inbounds nuw i8, ptr %1, i64 %67
  store volatile i8 0, ptr %68, align 1
  %69 = add nuw nsw i64 %67, 1
  %70 = icmp eq i64 %69, %64
  br i1 %70, label %71, label %66
71:
  %72 = phi i64 [ %62, %61 ], [ 0, %63 ], [ 0, %66 ]
  ret i64 %72
}

define internal void @table_key(ptr %0, ptr %1, i64 %2) #0 {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %12, label %5
5:
  %6 = phi i64 [ %10, %5 ], [ 0, %3 ]
  %7 = getelementptr inbounds nuw %struct.unaligned, ptr %1, i64 %6
  %8 = load i64, ptr %7, align 1
  %9 = getelementptr inbounds nuw i64, ptr %0, i64 %6
  store i64 %8, ptr %9, align 8
  %10 = add nuw i64 %6, 1
  %11 = icmp eq i64 %10, %2
  br i1 %11, label %12, label %5
12:
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
  %110 = phi i64 [ %98, %86 ], [ %205, %203 ]
  %111 = getelementptr inbounds nuw i32, ptr %100, i64 %110
  %112 = load i32, ptr %111, align 4
  %113 = icmp eq i32 %112, 0
  br i1 %113, label %114, label %115
114:
  store i64 %110, ptr %2, align 8
  br label %208
115:
  %116 = zext i32 %112 to i64
  %117 = add nsw i64 %116, -1
  %118 = icmp ult i64 %117, %8
  br i1 %118, label %119, label %203
119:
  %120 = mul i64 %117, %7
  %121 = add i64 %101, %120
  %122 = inttoptr i64 %121 to ptr
  %123 = getelementptr inbounds nuw i8, ptr %122, i64 8
  br i1 %11, label %129, label %124
124:
  %125 = load i64, ptr %123, align 8
  %126 = load i64, ptr %1, align 8
  %127 = icmp eq i64 %125, %126
  %128 = zext i1 %127 to i32
  br label %129
129:
  %130 = phi i32 [ %128, %124 ], [ 1, %119 ]
  br i1 %91, label %131, label %137
131:
  %132 = getelementptr inbounds nuw i8, ptr %122, i64 16
  %133 = load i64, ptr %132, align 8
  %134 = load i64, ptr %102, align 8
  %135 = icmp eq i64 %133, %134
  %136 = select i1 %135, i32 %130, i32 0
  br label %137
137:
  %138 = phi i32 [ %136, %131 ], [ %130, %129 ]
  br i1 %90, label %139, label %145
139:
  %140 = getelementptr inbounds nuw i8, ptr %122, i64 24
  %141 = load i64, ptr %140, align 8
  %142 = load i64, ptr %103, align 8
  %143 = icmp eq i64 %141, %142
  %144 = select i1 %143, i32 %138, i32 0
  br label %145
145:
  %146 = phi i32 [ %144, %139 ], [ %138, %137 ]
  br i1 %92, label %147, label %153
147:
  %148 = getelementptr inbounds nuw i8, ptr %122, i64 32
  %149 = load i64, ptr %148, align 8
  %150 = load i64, ptr %104, align 8
  %151 = icmp eq i64 %149, %150
  %152 = select i1 %151, i32 %146, i32 0
  br label %153
153:
  %154 = phi i32 [ %152, %147 ], [ %146, %145 ]
  br i1 %89, label %155, label %161
155:
  %156 = getelementptr inbounds nuw i8, ptr %122, i64 40
  %157 = load i64, ptr %156, align 8
  %158 = load i64, ptr %105, align 8
  %159 = icmp eq i64 %157, %158
  %160 = select i1 %159, i32 %154, i32 0
  br label %161
161:
  %162 = phi i32 [ %160, %155 ], [ %154, %153 ]
  br i1 %93, label %163, label %169
163:
  %164 = getelementptr inbounds nuw i8, ptr %122, i64 48
  %165 = load i64, ptr %164, align 8
  %166 = load i64, ptr %106, align 8
  %167 = icmp eq i64 %165, %166
  %168 = select i1 %167, i32 %162, i32 0
  br label %169
169:
  %170 = phi i32 [ %168, %163 ], [ %162, %161 ]
  br i1 %88, label %171, label %177
171:
  %172 = getelementptr inbounds nuw i8, ptr %122, i64 56
  %173 = load i64, ptr %172, align 8
  %174 = load i64, ptr %107, align 8
  %175 = icmp eq i64 %173, %174
  %176 = select i1 %175, i32 %170, i32 0
  br label %177
177:
  %178 = phi i32 [ %176, %171 ], [ %170, %169 ]
  br i1 %94, label %179, label %185
179:
  %180 = getelementptr inbounds nuw i8, ptr %122, i64 64
  %181 = load i64, ptr %180, align 8
  %182 = load i64, ptr %108, align 8
  %183 = icmp eq i64 %181, %182
  %184 = select i1 %183, i32 %178, i32 0
  br label %185
185:
  %186 = phi i32 [ %184, %179 ], [ %178, %177 ]
  %187 = icmp ne i32 %186, 0
  %188 = select i1 %87, i1 %187, i1 false
  br i1 %188, label %189, label %199
189:
  %190 = phi i64 [ %196, %189 ], [ 8, %185 ]
  %191 = getelementptr inbounds nuw i64, ptr %123, i64 %190
  %192 = load i64, ptr %191, align 8
  %193 = getelementptr inbounds nuw i64, ptr %1, i64 %190
  %194 = load i64, ptr %193, align 8
  %195 = icmp eq i64 %192, %194
  %196 = add nuw nsw i64 %190, 1
  %197 = icmp samesign ult i64 %196, %10
  %198 = select i1 %197, i1 %195, i1 false
  br i1 %198, label %189, label %199
199:
  %200 = phi i1 [ %187, %185 ], [ %195, %189 ]
  br i1 %200, label %201, label %203
201:
  store i64 %110, ptr %2, align 8
  %202 = getelementptr inbounds nuw i8, ptr %2, i64 16
  store i64 %117, ptr %202, align 8
  br label %208
203:
  %204 = add i64 %110, 1
  %205 = and i64 %204, %5
  %206 = icmp eq i64 %205, %98
  br i1 %206, label %207, label %109
207:
  store i64 -1, ptr %2, align 8
  br label %208
208:
  %209 = phi i64 [ %121, %201 ], [ 0, %207 ], [ 0, %114 ]
  ret i64 %209
}

define internal i64 @table_insert(i64 %0, ptr %1, ptr %2, i32 %3, i64 %4, i64 %5, i64 %6, i64 %7) #1 {
  %9 = inttoptr i64 %0 to ptr
  %10 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %11 = load i64, ptr %10, align 8
  %12 = load i64, ptr %2, align 8
  %13 = icmp eq i64 %12, -1
  br i1 %13, label %253, label %14
14:
  %15 = icmp eq i64 %11, 0
  br i1 %15, label %26, label %16
16:
  %17 = add i64 %11, -1
  %18 = icmp ult i64 %17, %7
  br i1 %18, label %19, label %253
19:
  %20 = add i64 %5, %0
  %21 = mul i64 %17, %6
  %22 = add i64 %20, %21
  %23 = inttoptr i64 %22 to ptr
  %24 = load i32, ptr %23, align 8
  %25 = zext i32 %24 to i64
  store i64 %25, ptr %10, align 8
  br label %36
26:
  %27 = getelementptr inbounds nuw i8, ptr %9, i64 16
  %28 = load i64, ptr %27, align 8
  %29 = icmp ult i64 %28, %7
  br i1 %29, label %30, label %253
30:
  %31 = add i64 %5, %0
  %32 = mul i64 %28, %6
  %33 = add i64 %31, %32
  %34 = inttoptr i64 %33 to ptr
  %35 = add nuw i64 %28, 1
  store i64 %35, ptr %27, align 8
  br label %36
36:
  %37 = phi ptr [ %23, %19 ], [ %34, %30 ]
  %38 = phi i64 [ %17, %19 ], [ %28, %30 ]
  %39 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %40 = load i64, ptr %39, align 8
  %41 = trunc i64 %40 to i32
  store i32 %41, ptr %37, align 8
  %42 = getelementptr inbounds nuw i8, ptr %37, i64 4
  store i32 1, ptr %42, align 4
  %43 = getelementptr inbounds nuw i8, ptr %37, i64 8
  %44 = icmp ugt i64 %6, 8
  br i1 %44, label %45, label %244
45:
  %46 = icmp eq i32 %3, 0
  br i1 %46, label %50, label %47
47:
  %48 = load i64, ptr %1, align 8
  store i64 %48, ptr %43, align 8
  %49 = icmp ugt i64 %6, 16
  br i1 %49, label %52, label %244
50:
  store i64 0, ptr %43, align 8
  %51 = icmp ugt i64 %6, 16
  br i1 %51, label %61, label %244
52:
  %53 = icmp eq i32 %3, 1
  br i1 %53, label %57, label %54
54:
  %55 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %56 = load i64, ptr %55, align 8
  br label %57
57:
  %58 = phi i64 [ %56, %54 ], [ 0, %52 ]
  %59 = getelementptr inbounds nuw i8, ptr %37, i64 16
  store i64 %58, ptr %59, align 8
  %60 = icmp ugt i64 %6, 24
  br i1 %60, label %64, label %244
61:
  %62 = getelementptr inbounds nuw i8, ptr %37, i64 16
  store i64 0, ptr %62, align 8
  %63 = icmp ugt i64 %6, 24
  br i1 %63, label %73, label %244
64:
  %65 = icmp ugt i32 %3, 2
  br i1 %65, label %66, label %69
66:
  %67 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %68 = load i64, ptr %67, align 8
  br label %69
69:
  %70 = phi i64 [ %68, %66 ], [ 0, %64 ]
  %71 = getelementptr inbounds nuw i8, ptr %37, i64 24
  store i64 %70, ptr %71, align 8
  %72 = icmp ugt i64 %6, 32
  br i1 %72, label %76, label %244
73:
  %74 = getelementptr inbounds nuw i8, ptr %37, i64 24
  store i64 0, ptr %74, align 8
  %75 = icmp ugt i64 %6, 32
  br i1 %75, label %85, label %244
76:
  %77 = icmp ugt i32 %3, 3
  br i1 %77, label %78, label %81
78:
  %79 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %80 = load i64, ptr %79, align 8
  br label %81
81:
  %82 = phi i64 [ %80, %78 ], [ 0, %76 ]
  %83 = getelementptr inbounds nuw i8, ptr %37, i64 32
  store i64 %82, ptr %83, align 8
  %84 = icmp ugt i64 %6, 40
  br i1 %84, label %88, label %244
85:
  %86 = getelementptr inbounds nuw i8, ptr %37, i64 32
  store i64 0, ptr %86, align 8
  %87 = icmp ugt i64 %6, 40
  br i1 %87, label %97, label %244
88:
  %89 = icmp ugt i32 %3, 4
  br i1 %89, label %90, label %93
90:
  %91 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %92 = load i64, ptr %91, align 8
  br label %93
93:
  %94 = phi i64 [ %92, %90 ], [ 0, %88 ]
  %95 = getelementptr inbounds nuw i8, ptr %37, i64 40
  store i64 %94, ptr %95, align 8
  %96 = icmp ugt i64 %6, 48
  br i1 %96, label %100, label %244
97:
  %98 = getelementptr inbounds nuw i8, ptr %37, i64 40
  store i64 0, ptr %98, align 8
  %99 = icmp ugt i64 %6, 48
  br i1 %99, label %109, label %244
100:
  %101 = icmp ugt i32 %3, 5
  br i1 %101, label %102, label %105
102:
  %103 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %104 = load i64, ptr %103, align 8
  br label %105
105:
  %106 = phi i64 [ %104, %102 ], [ 0, %100 ]
  %107 = getelementptr inbounds nuw i8, ptr %37, i64 48
  store i64 %106, ptr %107, align 8
  %108 = icmp ugt i64 %6, 56
  br i1 %108, label %112, label %244
109:
  %110 = getelementptr inbounds nuw i8, ptr %37, i64 48
  store i64 0, ptr %110, align 8
  %111 = icmp ugt i64 %6, 56
  br i1 %111, label %121, label %244
112:
  %113 = icmp ugt i32 %3, 6
  br i1 %113, label %114, label %117
114:
  %115 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %116 = load i64, ptr %115, align 8
  br label %117
117:
  %118 = phi i64 [ %116, %114 ], [ 0, %112 ]
  %119 = getelementptr inbounds nuw i8, ptr %37, i64 56
  store i64 %118, ptr %119, align 8
  %120 = icmp ugt i64 %6, 64
  br i1 %120, label %124, label %244
121:
  %122 = getelementptr inbounds nuw i8, ptr %37, i64 56
  store i64 0, ptr %122, align 8
  %123 = icmp ugt i64 %6, 64
  br i1 %123, label %133, label %244
124:
  %125 = icmp ugt i32 %3, 7
  br i1 %125, label %126, label %129
126:
  %127 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %128 = load i64, ptr %127, align 8
  br label %129
129:
  %130 = phi i64 [ %128, %126 ], [ 0, %124 ]
  %131 = getelementptr inbounds nuw i8, ptr %37, i64 64
  store i64 %130, ptr %131, align 8
  %132 = icmp ugt i64 %6, 72
  br i1 %132, label %136, label %244
133:
  %134 = getelementptr inbounds nuw i8, ptr %37, i64 64
  store i64 0, ptr %134, align 8
  %135 = icmp ugt i64 %6, 72
  br i1 %135, label %145, label %244
136:
  %137 = icmp ugt i32 %3, 8
  br i1 %137, label %138, label %141
138:
  %139 = getelementptr inbounds nuw i8, ptr %1, i64 64
  %140 = load i64, ptr %139, align 8
  br label %141
141:
  %142 = phi i64 [ %140, %138 ], [ 0, %136 ]
  %143 = getelementptr inbounds nuw i8, ptr %37, i64 72
  store i64 %142, ptr %143, align 8
  %144 = icmp ugt i64 %6, 80
  br i1 %144, label %148, label %244
145:
  %146 = getelementptr inbounds nuw i8, ptr %37, i64 72
  store i64 0, ptr %146, align 8
  %147 = icmp ugt i64 %6, 80
  br i1 %147, label %157, label %244
148:
  %149 = icmp ugt i32 %3, 9
  br i1 %149, label %150, label %153
150:
  %151 = getelementptr inbounds nuw i8, ptr %1, i64 72
  %152 = load i64, ptr %151, align 8
  br label %153
153:
  %154 = phi i64 [ %152, %150 ], [ 0, %148 ]
  %155 = getelementptr inbounds nuw i8, ptr %37, i64 80
  store i64 %154, ptr %155, align 8
  %156 = icmp ugt i64 %6, 88
  br i1 %156, label %160, label %244
157:
  %158 = getelementptr inbounds nuw i8, ptr %37, i64 80
  store i64 0, ptr %158, align 8
  %159 = icmp ugt i64 %6, 88
  br i1 %159, label %169, label %244
160:
  %161 = icmp ugt i32 %3, 10
  br i1 %161, label %162, label %165
162:
  %163 = getelementptr inbounds nuw i8, ptr %1, i64 80
  %164 = load i64, ptr %163, align 8
  br label %165
165:
  %166 = phi i64 [ %164, %162 ], [ 0, %160 ]
  %167 = getelementptr inbounds nuw i8, ptr %37, i64 88
  store i64 %166, ptr %167, align 8
  %168 = icmp ugt i64 %6, 96
  br i1 %168, label %172, label %244
169:
  %170 = getelementptr inbounds nuw i8, ptr %37, i64 88
  store i64 0, ptr %170, align 8
  %171 = icmp ugt i64 %6, 96
  br i1 %171, label %181, label %244
172:
  %173 = icmp ugt i32 %3, 11
  br i1 %173, label %174, label %177
174:
  %175 = getelementptr inbounds nuw i8, ptr %1, i64 88
  %176 = load i64, ptr %175, align 8
  br label %177
177:
  %178 = phi i64 [ %176, %174 ], [ 0, %172 ]
  %179 = getelementptr inbounds nuw i8, ptr %37, i64 96
  store i64 %178, ptr %179, align 8
  %180 = icmp ugt i64 %6, 104
  br i1 %180, label %184, label %244
181:
  %182 = getelementptr inbounds nuw i8, ptr %37, i64 96
  store i64 0, ptr %182, align 8
  %183 = icmp ugt i64 %6, 104
  br i1 %183, label %193, label %244
184:
  %185 = icmp ugt i32 %3, 12
  br i1 %185, label %186, label %189
186:
  %187 = getelementptr inbounds nuw i8, ptr %1, i64 96
  %188 = load i64, ptr %187, align 8
  br label %189
189:
  %190 = phi i64 [ %188, %186 ], [ 0, %184 ]
  %191 = getelementptr inbounds nuw i8, ptr %37, i64 104
  store i64 %190, ptr %191, align 8
  %192 = icmp ugt i64 %6, 112
  br i1 %192, label %196, label %244
193:
  %194 = getelementptr inbounds nuw i8, ptr %37, i64 104
  store i64 0, ptr %194, align 8
  %195 = icmp ugt i64 %6, 112
  br i1 %195, label %205, label %244
196:
  %197 = icmp ugt i32 %3, 13
  br i1 %197, label %198, label %201
198:
  %199 = getelementptr inbounds nuw i8, ptr %1, i64 104
  %200 = load i64, ptr %199, align 8
  br label %201
201:
  %202 = phi i64 [ %200, %198 ], [ 0, %196 ]
  %203 = getelementptr inbounds nuw i8, ptr %37, i64 112
  store i64 %202, ptr %203, align 8
  %204 = icmp ugt i64 %6, 120
  br i1 %204, label %208, label %244
205:
  %206 = getelementptr inbounds nuw i8, ptr %37, i64 112
  store i64 0, ptr %206, align 8
  %207 = icmp ugt i64 %6, 120
  br i1 %207, label %217, label %244
208:
  %209 = icmp ugt i32 %3, 14
  br i1 %209, label %210, label %213
210:
  %211 = getelementptr inbounds nuw i8, ptr %1, i64 112
  %212 = load i64, ptr %211, align 8
  br label %213
213:
  %214 = phi i64 [ %212, %210 ], [ 0, %208 ]
  %215 = getelementptr inbounds nuw i8, ptr %37, i64 120
  store i64 %214, ptr %215, align 8
  %216 = icmp ugt i64 %6, 128
  br i1 %216, label %220, label %244
217:
  %218 = getelementptr inbounds nuw i8, ptr %37, i64 120
  store i64 0, ptr %218, align 8
  %219 = icmp ugt i64 %6, 128
  br i1 %219, label %225, label %244
220:
  %221 = icmp ugt i32 %3, 15
  br i1 %221, label %222, label %225
222:
  %223 = getelementptr inbounds nuw i8, ptr %1, i64 120
  %224 = load i64, ptr %223, align 8
  br label %225
225:
  %226 = phi i64 [ %224, %222 ], [ 0, %220 ], [ 0, %217 ]
  %227 = getelementptr inbounds nuw i8, ptr %37, i64 128
  store i64 %226, ptr %227, align 8
  %228 = icmp ugt i64 %6, 136
  br i1 %228, label %229, label %244
229:
  %230 = phi i32 [ %239, %236 ], [ 16, %225 ]
  %231 = icmp ult i32 %230, %3
  %232 = zext i32 %230 to i64
  br i1 %231, label %233, label %236
233:
  %234 = getelementptr inbounds nuw i64, ptr %1, i64 %232
  %235 = load i64, ptr %234, align 8
  br label %236
236:
  %237 = phi i64 [ %235, %233 ], [ 0, %229 ]
  %238 = getelementptr inbounds nuw i64, ptr %43, i64 %232
  store i64 %237, ptr %238, align 8
  %239 = add i32 %230, 1
  %240 = shl i32 %239, 3
  %241 = zext i32 %240 to i64
  %242 = add nuw nsw i64 %241, 8
  %243 = icmp ult i64 %242, %6
  br i1 %243, label %229, label %244
244:
  %245 = trunc i64 %38 to i32
  %246 = add i32 %245, 1
  %247 = getelementptr inbounds nuw i8, ptr %9, i64 64
  %248 = load i64, ptr %2, align 8
  %249 = getelementptr inbounds nuw i32, ptr %247, i64 %248
  store i32 %246, ptr %249, align 4
  %250 = load i64, ptr %9, align 8
  %251 = add i64 %250, 1
  store i64 %251, ptr %9, align 8
  %252 = ptrtoint ptr %37 to i64
  br label %253
253:
  %254 = phi i64 [ 0, %16 ], [ 0, %8 ], [ %252, %244 ], [ 0, %26 ]
  ret i64 %254
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
  %18 = trunc i64 %17 to i32
  store i32 %18, ptr %14, align 8
  %19 = getelementptr inbounds nuw i8, ptr %14, i64 4
  store i32 0, ptr %19, align 4
  %20 = load i64, ptr %9, align 8
  %21 = add i64 %20, 1
  store i64 %21, ptr %16, align 8
  %22 = load i64, ptr %8, align 8
  %23 = add i64 %22, -1
  store i64 %23, ptr %8, align 8
  %24 = getelementptr inbounds nuw i8, ptr %8, i64 64
  %25 = add i64 %15, 1
  %26 = and i64 %25, %3
  %27 = load i64, ptr %1, align 8
  %28 = icmp eq i64 %26, %27
  br i1 %28, label %58, label %29
29:
  %30 = phi i64 [ %53, %52 ], [ %27, %7 ]
  %31 = phi i64 [ %56, %52 ], [ %26, %7 ]
  %32 = phi i64 [ %54, %52 ], [ %15, %7 ]
  %33 = getelementptr inbounds nuw i32, ptr %24, i64 %31
  %34 = load i32, ptr %33, align 4
  %35 = zext i32 %34 to i64
  %36 = add nsw i64 %35, -1
  %37 = icmp ult i64 %36, %6
  br i1 %37, label %38, label %58
38:
  %39 = mul i64 %36, %5
  %40 = add i64 %39, %11
  %41 = inttoptr i64 %40 to ptr
  %42 = load i32, ptr %41, align 8
  %43 = zext i32 %42 to i64
  %44 = sub i64 %31, %43
  %45 = and i64 %44, %3
  %46 = sub i64 %31, %32
  %47 = and i64 %46, %3
  %48 = icmp ult i64 %45, %47
  br i1 %48, label %52, label %49
49:
  %50 = getelementptr inbounds nuw i32, ptr %24, i64 %32
  store i32 %34, ptr %50, align 4
  %51 = load i64, ptr %1, align 8
  br label %52
52:
  %53 = phi i64 [ %51, %49 ], [ %30, %38 ]
  %54 = phi i64 [ %31, %49 ], [ %32, %38 ]
  %55 = add i64 %31, 1
  %56 = and i64 %55, %3
  %57 = icmp eq i64 %56, %53
  br i1 %57, label %58, label %29
58:
  %59 = phi i64 [ %15, %7 ], [ %32, %29 ], [ %54, %52 ]
  %60 = getelementptr inbounds nuw i32, ptr %24, i64 %59
  store i32 0, ptr %60, align 4
  ret void
}
