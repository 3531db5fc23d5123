%struct.question = type { i64, i64, i64, i64 }
%struct.timespec = type { i32, i32 }
%struct.block = type { i64, i64, i64 }
%struct.unaligned = type { i64 }
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
  %12 = add i64 %11, %9
  %13 = icmp ugt i64 %9, %3
  br i1 %13, label %57, label %14
14:
  %15 = icmp eq i32 %4, 0
  %16 = getelementptr inbounds nuw i8, ptr %7, i32 64
  %17 = add i64 %3, 4294967288
  %18 = getelementptr inbounds nuw i8, ptr %7, i32 24
  %19 = load i64, ptr %7, align 8
  %20 = sub i64 %12, %19
  %21 = icmp ugt i64 %20, %3
  br i1 %21, label %33, label %22
22:
  %23 = and i64 %11, %17
  %24 = trunc i64 %23 to i32
  %25 = getelementptr inbounds nuw i8, ptr %16, i32 %24
  %26 = trunc i64 %1 to i32
  %27 = or i32 %26, -2147483648
  store i32 %27, ptr %25, align 4
  %28 = trunc i64 %2 to i32
  %29 = getelementptr inbounds nuw i8, ptr %25, i32 4
  store i32 %28, ptr %29, align 4
  store i64 %12, ptr %10, align 8
  %30 = getelementptr inbounds nuw i8, ptr %25, i32 8
  %31 = ptrtoint ptr %30 to i32
  %32 = zext i32 %31 to i64
  br label %61
33:
  %34 = phi i64 [ %54, %49 ], [ %19, %14 ]
  %35 = sub i64 %11, %34
  %36 = icmp ugt i64 %35, %3
  %37 = select i1 %15, i1 true, i1 %36
  br i1 %37, label %57, label %38
38:
  %39 = and i64 %34, %17
  %40 = trunc i64 %39 to i32
  %41 = getelementptr inbounds nuw i8, ptr %16, i32 %40
  %42 = load i32, ptr %41, align 4
  %43 = icmp sgt i32 %42, -1
  br i1 %43, label %44, label %57
44:
  %45 = icmp samesign ult i32 %42, 1073741824
  br i1 %45, label %46, label %49
46:
  %47 = load i64, ptr %18, align 8
  %48 = add i64 %47, 1
  store i64 %48, ptr %18, align 8
  br label %49
49:
  %50 = and i32 %42, 1073741823
  %51 = add nuw nsw i32 %50, 15
  %52 = and i32 %51, 2147483640
  %53 = zext nneg i32 %52 to i64
  %54 = add i64 %34, %53
  store i64 %54, ptr %7, align 8
  %55 = sub i64 %12, %54
  %56 = icmp ugt i64 %55, %3
  br i1 %56, label %33, label %22
57:
  %58 = getelementptr inbounds nuw i8, ptr %7, i32 24
  %59 = load i64, ptr %58, align 8
  %60 = add i64 %59, 1
  store i64 %60, ptr %58, align 8
  br label %61
61:
  %62 = phi i64 [ %32, %22 ], [ 0, %57 ]
  ret i64 %62
}

define internal void @commit(i64 %0, i32 %1) #0 {
  %3 = trunc i64 %0 to i32
  %4 = add i32 %3, -8
  %5 = inttoptr i32 %4 to ptr
  %6 = load i32, ptr %5, align 4
  %7 = and i32 %6, 2147483647
  %8 = or i32 %7, %1
  store i32 %8, ptr %5, align 4
  ret void
}

define internal i64 @table_next(i64 %0, ptr %1, i32 %2, i32 %3, i32 %4, i32 %5, i32 %6) #1 {
  %8 = trunc i64 %0 to i32
  %9 = inttoptr i32 %8 to ptr
  %10 = getelementptr inbounds nuw i8, ptr %9, i32 16
  %11 = load i64, ptr %10, align 8
  %12 = zext i32 %6 to i64
  %13 = call i64 @llvm.umin.i64(i64 %11, i64 %12)
  %14 = trunc nuw i64 %13 to i32
  %15 = icmp ult i32 %2, %14
  br i1 %15, label %16, label %63
16:
  %17 = add i32 %4, %8
  br label %18
18:
  %19 = phi i32 [ %2, %16 ], [ %61, %60 ]
  %20 = mul i32 %19, %5
  %21 = add i32 %17, %20
  %22 = inttoptr i32 %21 to ptr
  %23 = getelementptr inbounds nuw i8, ptr %22, i32 4
  %24 = load i32, ptr %23, align 4
  %25 = icmp eq i32 %24, 0
  br i1 %25, label %60, label %26
26:
  %27 = getelementptr inbounds nuw i8, ptr %22, i32 8
  %28 = icmp eq i32 %3, 8
  br i1 %28, label %32, label %29
29:
  %30 = zext i32 %3 to i64
  %31 = icmp ugt i32 %3, 7
  br i1 %31, label %39, label %34
32:
  %33 = load i64, ptr %27, align 1
  store i64 %33, ptr %1, align 1
  br label %57
34:
  %35 = phi ptr [ %1, %29 ], [ %45, %39 ]
  %36 = phi ptr [ %27, %29 ], [ %46, %39 ]
  %37 = phi i64 [ %30, %29 ], [ %44, %39 ]
  %38 = icmp eq i64 %37, 0
  br i1 %38, label %57, label %48
39:
  %40 = phi i64 [ %44, %39 ], [ %30, %29 ]
  %41 = phi ptr [ %46, %39 ], [ %27, %29 ]
  %42 = phi ptr [ %45, %39 ], [ %1, %29 ]
  %43 = load i64, ptr %41, align 1
  store i64 %43, ptr %42, align 1
  %44 = add i64 %40, -8
  %45 = getelementptr inbounds nuw i8, ptr %42, i32 8
  %46 = getelementptr inbounds nuw i8, ptr %41, i32 8
  %47 = icmp ugt i64 %44, 7
  br i1 %47, label %39, label %34
48:
  %49 = phi i64 [ %55, %48 ], [ %37, %34 ]
  %50 = phi ptr [ %52, %48 ], [ %36, %34 ]
  %51 = phi ptr [ %54, %48 ], [ %35, %34 ]
  %52 = getelementptr inbounds nuw i8, ptr %50, i32 1
  %53 = load i8, ptr %50, align 1
  %54 = getelementptr inbounds nuw i8, ptr %51, i32 1
  store i8 %53, ptr %51, align 1
  %55 = add nsw i64 %49, -1
  %56 = icmp eq i64 %55, 0
  br i1 %56, label %57, label %48
57:
  %58 = zext i32 %19 to i64
  %59 = add nuw nsw i64 %58, 1
  br label %72
60:
  %61 = add i32 %19, 1
  %62 = icmp eq i32 %61, %14
  br i1 %62, label %63, label %18
63:
  %64 = zext i32 %3 to i64
  %65 = icmp eq i32 %3, 0
  br i1 %65, label %72, label %66
66:
  %67 = phi i64 [ %70, %66 ], [ 0, %63 ]
  %68 = trunc nuw i64 %67 to i32
  %69 = getelementptr inbounds nuw i8, ptr %1, i32 %68
  store volatile i8 0, ptr %69, align 1
  %70 = add nuw nsw i64 %67, 1
  %71 = icmp samesign ult i64 %70, %64
  br i1 %71, label %66, label %72
72:
  %73 = phi i64 [ %59, %57 ], [ 0, %63 ], [ 0, %66 ]
  ret i64 %73
}

define internal void @table_key(ptr %0, ptr %1, i64 %2) #0 {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %13, label %5
5:
  %6 = phi i64 [ %11, %5 ], [ 0, %3 ]
  %7 = trunc i64 %6 to i32
  %8 = getelementptr inbounds nuw %struct.unaligned, ptr %1, i32 %7
  %9 = load i64, ptr %8, align 1
  %10 = getelementptr inbounds nuw i64, ptr %0, i32 %7
  store i64 %9, ptr %10, align 8
  %11 = add nuw i64 %6, 1
  %12 = icmp ult i64 %11, %2
  br i1 %12, label %5, label %13
13:
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
  %140 = phi i32 [ %128, %116 ], [ %235, %233 ]
  %141 = getelementptr inbounds nuw i32, ptr %130, i32 %140
  %142 = load i32, ptr %141, align 4
  %143 = icmp eq i32 %142, 0
  br i1 %143, label %144, label %145
144:
  store i32 %140, ptr %2, align 4
  br label %238
145:
  %146 = add i32 %142, -1
  %147 = icmp ult i32 %146, %8
  br i1 %147, label %148, label %233
148:
  %149 = mul i32 %146, %7
  %150 = add i32 %131, %149
  %151 = inttoptr i32 %150 to ptr
  %152 = getelementptr inbounds nuw i8, ptr %151, i32 8
  br i1 %10, label %158, label %153
153:
  %154 = load i64, ptr %152, align 8
  %155 = load i64, ptr %1, align 8
  %156 = icmp eq i64 %154, %155
  %157 = zext i1 %156 to i32
  br label %158
158:
  %159 = phi i32 [ %157, %153 ], [ 1, %148 ]
  br i1 %122, label %160, label %166
160:
  %161 = getelementptr inbounds nuw i8, ptr %151, i32 16
  %162 = load i64, ptr %161, align 8
  %163 = load i64, ptr %132, align 8
  %164 = icmp eq i64 %162, %163
  %165 = select i1 %164, i32 %159, i32 0
  br label %166
166:
  %167 = phi i32 [ %165, %160 ], [ %159, %158 ]
  br i1 %121, label %168, label %174
168:
  %169 = getelementptr inbounds nuw i8, ptr %151, i32 24
  %170 = load i64, ptr %169, align 8
  %171 = load i64, ptr %133, align 8
  %172 = icmp eq i64 %170, %171
  %173 = select i1 %172, i32 %167, i32 0
  br label %174
174:
  %175 = phi i32 [ %173, %168 ], [ %167, %166 ]
  br i1 %123, label %176, label %182
176:
  %177 = getelementptr inbounds nuw i8, ptr %151, i32 32
  %178 = load i64, ptr %177, align 8
  %179 = load i64, ptr %134, align 8
  %180 = icmp eq i64 %178, %179
  %181 = select i1 %180, i32 %175, i32 0
  br label %182
182:
  %183 = phi i32 [ %181, %176 ], [ %175, %174 ]
  br i1 %120, label %184, label %190
184:
  %185 = getelementptr inbounds nuw i8, ptr %151, i32 40
  %186 = load i64, ptr %185, align 8
  %187 = load i64, ptr %135, align 8
  %188 = icmp eq i64 %186, %187
  %189 = select i1 %188, i32 %183, i32 0
  br label %190
190:
  %191 = phi i32 [ %189, %184 ], [ %183, %182 ]
  br i1 %124, label %192, label %198
192:
  %193 = getelementptr inbounds nuw i8, ptr %151, i32 48
  %194 = load i64, ptr %193, align 8
  %195 = load i64, ptr %136, align 8
  %196 = icmp eq i64 %194, %195
  %197 = select i1 %196, i32 %191, i32 0
  br label %198
198:
  %199 = phi i32 [ %197, %192 ], [ %191, %190 ]
  br i1 %119, label %200, label %206
200:
  %201 = getelementptr inbounds nuw i8, ptr %151, i32 56
  %202 = load i64, ptr %201, align 8
  %203 = load i64, ptr %137, align 8
  %204 = icmp eq i64 %202, %203
  %205 = select i1 %204, i32 %199, i32 0
  br label %206
206:
  %207 = phi i32 [ %205, %200 ], [ %199, %198 ]
  br i1 %125, label %208, label %214
208:
  %209 = getelementptr inbounds nuw i8, ptr %151, i32 64
  %210 = load i64, ptr %209, align 8
  %211 = load i64, ptr %138, align 8
  %212 = icmp eq i64 %210, %211
  %213 = select i1 %212, i32 %207, i32 0
  br label %214
214:
  %215 = phi i32 [ %213, %208 ], [ %207, %206 ]
  %216 = icmp ne i32 %215, 0
  %217 = select i1 %117, i1 %216, i1 false
  br i1 %217, label %218, label %228
218:
  %219 = phi i32 [ %225, %218 ], [ 8, %214 ]
  %220 = getelementptr inbounds nuw i64, ptr %152, i32 %219
  %221 = load i64, ptr %220, align 8
  %222 = getelementptr inbounds nuw i64, ptr %1, i32 %219
  %223 = load i64, ptr %222, align 8
  %224 = icmp eq i64 %221, %223
  %225 = add nuw i32 %219, 1
  %226 = icmp ult i32 %225, %4
  %227 = select i1 %226, i1 %224, i1 false
  br i1 %227, label %218, label %228
228:
  %229 = phi i1 [ %216, %214 ], [ %224, %218 ]
  br i1 %229, label %230, label %233
230:
  store i32 %140, ptr %2, align 4
  %231 = getelementptr inbounds nuw i8, ptr %2, i32 8
  store i32 %146, ptr %231, align 4
  %232 = zext i32 %150 to i64
  br label %238
233:
  %234 = add i32 %140, 1
  %235 = and i32 %234, %5
  %236 = icmp eq i32 %235, %128
  br i1 %236, label %237, label %139
237:
  store i32 -1, ptr %2, align 4
  br label %238
238:
  %239 = phi i64 [ %232, %230 ], [ 0, %237 ], [ 0, %144 ]
  ret i64 %239
}

define internal i64 @table_insert(i64 %0, ptr %1, ptr %2, i32 %3, i32 %4, i32 %5, i32 %6, i32 %7) #1 {
  %9 = trunc i64 %0 to i32
  %10 = inttoptr i32 %9 to ptr
  %11 = getelementptr inbounds nuw i8, ptr %10, i32 8
  %12 = load i64, ptr %11, align 8
  %13 = load i32, ptr %2, align 4
  %14 = icmp eq i32 %13, -1
  br i1 %14, label %258, label %15
15:
  %16 = icmp eq i64 %12, 0
  br i1 %16, label %30, label %17
17:
  %18 = add i64 %12, -1
  %19 = zext i32 %7 to i64
  %20 = icmp ult i64 %18, %19
  br i1 %20, label %21, label %258
21:
  %22 = trunc nuw i64 %12 to i32
  %23 = add i32 %22, -1
  %24 = add i32 %5, %9
  %25 = mul i32 %23, %6
  %26 = add i32 %24, %25
  %27 = inttoptr i32 %26 to ptr
  %28 = load i32, ptr %27, align 8
  %29 = zext i32 %28 to i64
  store i64 %29, ptr %11, align 8
  br label %43
30:
  %31 = getelementptr inbounds nuw i8, ptr %10, i32 16
  %32 = load i64, ptr %31, align 8
  %33 = zext i32 %7 to i64
  %34 = icmp ult i64 %32, %33
  br i1 %34, label %35, label %258
35:
  %36 = trunc nuw i64 %32 to i32
  %37 = add i32 %5, %9
  %38 = mul i32 %6, %36
  %39 = add i32 %37, %38
  %40 = inttoptr i32 %39 to ptr
  %41 = add nuw nsw i64 %32, 1
  store i64 %41, ptr %31, align 8
  %42 = add nuw i32 %36, 1
  br label %43
43:
  %44 = phi ptr [ %27, %21 ], [ %40, %35 ]
  %45 = phi i32 [ %22, %21 ], [ %42, %35 ]
  %46 = getelementptr inbounds nuw i8, ptr %2, i32 4
  %47 = load i32, ptr %46, align 4
  store i32 %47, ptr %44, align 8
  %48 = getelementptr inbounds nuw i8, ptr %44, i32 4
  store i32 1, ptr %48, align 4
  %49 = getelementptr inbounds nuw i8, ptr %44, i32 8
  %50 = icmp ugt i32 %6, 8
  br i1 %50, label %55, label %250
51:
  %52 = add i32 %6, -137
  %53 = lshr i32 %52, 3
  %54 = add nuw nsw i32 %53, 16
  br label %239
55:
  %56 = icmp eq i32 %3, 0
  br i1 %56, label %60, label %57
57:
  %58 = load i64, ptr %1, align 8
  store i64 %58, ptr %49, align 8
  %59 = icmp ugt i32 %6, 16
  br i1 %59, label %62, label %250
60:
  store i64 0, ptr %49, align 8
  %61 = icmp ugt i32 %6, 16
  br i1 %61, label %71, label %250
62:
  %63 = icmp eq i32 %3, 1
  br i1 %63, label %67, label %64
64:
  %65 = getelementptr inbounds nuw i8, ptr %1, i32 8
  %66 = load i64, ptr %65, align 8
  br label %67
67:
  %68 = phi i64 [ %66, %64 ], [ 0, %62 ]
  %69 = getelementptr inbounds nuw i8, ptr %44, i32 16
  store i64 %68, ptr %69, align 8
  %70 = icmp ugt i32 %6, 24
  br i1 %70, label %74, label %250
71:
  %72 = getelementptr inbounds nuw i8, ptr %44, i32 16
  store i64 0, ptr %72, align 8
  %73 = icmp ugt i32 %6, 24
  br i1 %73, label %83, label %250
74:
  %75 = icmp ugt i32 %3, 2
  br i1 %75, label %76, label %79
76:
  %77 = getelementptr inbounds nuw i8, ptr %1, i32 16
  %78 = load i64, ptr %77, align 8
  br label %79
79:
  %80 = phi i64 [ %78, %76 ], [ 0, %74 ]
  %81 = getelementptr inbounds nuw i8, ptr %44, i32 24
  store i64 %80, ptr %81, align 8
  %82 = icmp ugt i32 %6, 32
  br i1 %82, label %86, label %250
83:
  %84 = getelementptr inbounds nuw i8, ptr %44, i32 24
  store i64 0, ptr %84, align 8
  %85 = icmp ugt i32 %6, 32
  br i1 %85, label %95, label %250
86:
  %87 = icmp ugt i32 %3, 3
  br i1 %87, label %88, label %91
88:
  %89 = getelementptr inbounds nuw i8, ptr %1, i32 24
  %90 = load i64, ptr %89, align 8
  br label %91
91:
  %92 = phi i64 [ %90, %88 ], [ 0, %86 ]
  %93 = getelementptr inbounds nuw i8, ptr %44, i32 32
  store i64 %92, ptr %93, align 8
  %94 = icmp ugt i32 %6, 40
  br i1 %94, label %98, label %250
95:
  %96 = getelementptr inbounds nuw i8, ptr %44, i32 32
  store i64 0, ptr %96, align 8
  %97 = icmp ugt i32 %6, 40
  br i1 %97, label %107, label %250
98:
  %99 = icmp ugt i32 %3, 4
  br i1 %99, label %100, label %103
100:
  %101 = getelementptr inbounds nuw i8, ptr %1, i32 32
  %102 = load i64, ptr %101, align 8
  br label %103
103:
  %104 = phi i64 [ %102, %100 ], [ 0, %98 ]
  %105 = getelementptr inbounds nuw i8, ptr %44, i32 40
  store i64 %104, ptr %105, align 8
  %106 = icmp ugt i32 %6, 48
  br i1 %106, label %110, label %250
107:
  %108 = getelementptr inbounds nuw i8, ptr %44, i32 40
  store i64 0, ptr %108, align 8
  %109 = icmp ugt i32 %6, 48
  br i1 %109, label %119, label %250
110:
  %111 = icmp ugt i32 %3, 5
  br i1 %111, label %112, label %115
112:
  %113 = getelementptr inbounds nuw i8, ptr %1, i32 40
  %114 = load i64, ptr %113, align 8
  br label %115
115:
  %116 = phi i64 [ %114, %112 ], [ 0, %110 ]
  %117 = getelementptr inbounds nuw i8, ptr %44, i32 48
  store i64 %116, ptr %117, align 8
  %118 = icmp ugt i32 %6, 56
  br i1 %118, label %122, label %250
119:
  %120 = getelementptr inbounds nuw i8, ptr %44, i32 48
  store i64 0, ptr %120, align 8
  %121 = icmp ugt i32 %6, 56
  br i1 %121, label %131, label %250
122:
  %123 = icmp ugt i32 %3, 6
  br i1 %123, label %124, label %127
124:
  %125 = getelementptr inbounds nuw i8, ptr %1, i32 48
  %126 = load i64, ptr %125, align 8
  br label %127
127:
  %128 = phi i64 [ %126, %124 ], [ 0, %122 ]
  %129 = getelementptr inbounds nuw i8, ptr %44, i32 56
  store i64 %128, ptr %129, align 8
  %130 = icmp ugt i32 %6, 64
  br i1 %130, label %134, label %250
131:
  %132 = getelementptr inbounds nuw i8, ptr %44, i32 56
  store i64 0, ptr %132, align 8
  %133 = icmp ugt i32 %6, 64
  br i1 %133, label %143, label %250
134:
  %135 = icmp ugt i32 %3, 7
  br i1 %135, label %136, label %139
136:
  %137 = getelementptr inbounds nuw i8, ptr %1, i32 56
  %138 = load i64, ptr %137, align 8
  br label %139
139:
  %140 = phi i64 [ %138, %136 ], [ 0, %134 ]
  %141 = getelementptr inbounds nuw i8, ptr %44, i32 64
  store i64 %140, ptr %141, align 8
  %142 = icmp ugt i32 %6, 72
  br i1 %142, label %146, label %250
143:
  %144 = getelementptr inbounds nuw i8, ptr %44, i32 64
  store i64 0, ptr %144, align 8
  %145 = icmp ugt i32 %6, 72
  br i1 %145, label %155, label %250
146:
  %147 = icmp ugt i32 %3, 8
  br i1 %147, label %148, label %151
148:
  %149 = getelementptr inbounds nuw i8, ptr %1, i32 64
  %150 = load i64, ptr %149, align 8
  br label %151
151:
  %152 = phi i64 [ %150, %148 ], [ 0, %146 ]
  %153 = getelementptr inbounds nuw i8, ptr %44, i32 72
  store i64 %152, ptr %153, align 8
  %154 = icmp ugt i32 %6, 80
  br i1 %154, label %158, label %250
155:
  %156 = getelementptr inbounds nuw i8, ptr %44, i32 72
  store i64 0, ptr %156, align 8
  %157 = icmp ugt i32 %6, 80
  br i1 %157, label %167, label %250
158:
  %159 = icmp ugt i32 %3, 9
  br i1 %159, label %160, label %163
160:
  %161 = getelementptr inbounds nuw i8, ptr %1, i32 72
  %162 = load i64, ptr %161, align 8
  br label %163
163:
  %164 = phi i64 [ %162, %160 ], [ 0, %158 ]
  %165 = getelementptr inbounds nuw i8, ptr %44, i32 80
  store i64 %164, ptr %165, align 8
  %166 = icmp ugt i32 %6, 88
  br i1 %166, label %170, label %250
167:
  %168 = getelementptr inbounds nuw i8, ptr %44, i32 80
  store i64 0, ptr %168, align 8
  %169 = icmp ugt i32 %6, 88
  br i1 %169, label %179, label %250
170:
  %171 = icmp ugt i32 %3, 10
  br i1 %171, label %172, label %175
172:
  %173 = getelementptr inbounds nuw i8, ptr %1, i32 80
  %174 = load i64, ptr %173, align 8
  br label %175
175:
  %176 = phi i64 [ %174, %172 ], [ 0, %170 ]
  %177 = getelementptr inbounds nuw i8, ptr %44, i32 88
  store i64 %176, ptr %177, align 8
  %178 = icmp ugt i32 %6, 96
  br i1 %178, label %182, label %250
179:
  %180 = getelementptr inbounds nuw i8, ptr %44, i32 88
  store i64 0, ptr %180, align 8
  %181 = icmp ugt i32 %6, 96
  br i1 %181, label %191, label %250
182:
  %183 = icmp ugt i32 %3, 11
  br i1 %183, label %184, label %187
184:
  %185 = getelementptr inbounds nuw i8, ptr %1, i32 88
  %186 = load i64, ptr %185, align 8
  br label %187
187:
  %188 = phi i64 [ %186, %184 ], [ 0, %182 ]
  %189 = getelementptr inbounds nuw i8, ptr %44, i32 96
  store i64 %188, ptr %189, align 8
  %190 = icmp ugt i32 %6, 104
  br i1 %190, label %194, label %250
191:
  %192 = getelementptr inbounds nuw i8, ptr %44, i32 96
  store i64 0, ptr %192, align 8
  %193 = icmp ugt i32 %6, 104
  br i1 %193, label %203, label %250
194:
  %195 = icmp ugt i32 %3, 12
  br i1 %195, label %196, label %199
196:
  %197 = getelementptr inbounds nuw i8, ptr %1, i32 96
  %198 = load i64, ptr %197, align 8
  br label %199
199:
  %200 = phi i64 [ %198, %196 ], [ 0, %194 ]
  %201 = getelementptr inbounds nuw i8, ptr %44, i32 104
  store i64 %200, ptr %201, align 8
  %202 = icmp ugt i32 %6, 112
  br i1 %202, label %206, label %250
203:
  %204 = getelementptr inbounds nuw i8, ptr %44, i32 104
  store i64 0, ptr %204, align 8
  %205 = icmp ugt i32 %6, 112
  br i1 %205, label %215, label %250
206:
  %207 = icmp ugt i32 %3, 13
  br i1 %207, label %208, label %211
208:
  %209 = getelementptr inbounds nuw i8, ptr %1, i32 104
  %210 = load i64, ptr %209, align 8
  br label %211
211:
  %212 = phi i64 [ %210, %208 ], [ 0, %206 ]
  %213 = getelementptr inbounds nuw i8, ptr %44, i32 112
  store i64 %212, ptr %213, align 8
  %214 = icmp ugt i32 %6, 120
  br i1 %214, label %218, label %250
215:
  %216 = getelementptr inbounds nuw i8, ptr %44, i32 112
  store i64 0, ptr %216, align 8
  %217 = icmp ugt i32 %6, 120
  br i1 %217, label %227, label %250
218:
  %219 = icmp ugt i32 %3, 14
  br i1 %219, label %220, label %223
220:
  %221 = getelementptr inbounds nuw i8, ptr %1, i32 112
  %222 = load i64, ptr %221, align 8
  br label %223
223:
  %224 = phi i64 [ %222, %220 ], [ 0, %218 ]
  %225 = getelementptr inbounds nuw i8, ptr %44, i32 120
  store i64 %224, ptr %225, align 8
  %226 = icmp ugt i32 %6, 128
  br i1 %226, label %230, label %250
227:
  %228 = getelementptr inbounds nuw i8, ptr %44, i32 120
  store i64 0, ptr %228, align 8
  %229 = icmp ugt i32 %6, 128
  br i1 %229, label %235, label %250
230:
  %231 = icmp ugt i32 %3, 15
  br i1 %231, label %232, label %235
232:
  %233 = getelementptr inbounds nuw i8, ptr %1, i32 120
  %234 = load i64, ptr %233, align 8
  br label %235
235:
  %236 = phi i64 [ %234, %232 ], [ 0, %230 ], [ 0, %227 ]
  %237 = getelementptr inbounds nuw i8, ptr %44, i32 128
  store i64 %236, ptr %237, align 8
  %238 = icmp ugt i32 %6, 136
  br i1 %238, label %51, label %250
239:
  %240 = phi i32 [ 16, %51 ], [ %248, %245 ]
  %241 = icmp ult i32 %240, %3
  br i1 %241, label %242, label %245
242:
  %243 = getelementptr inbounds nuw i64, ptr %1, i32 %240
  %244 = load i64, ptr %243, align 8
  br label %245
245:
  %246 = phi i64 [ %244, %242 ], [ 0, %239 ]
  %247 = getelementptr inbounds nuw i64, ptr %49, i32 %240
  store i64 %246, ptr %247, align 8
  %248 = add nuw nsw i32 %240, 1
  %249 = icmp eq i32 %240, %54
  br i1 %249, label %250, label %239
250:
  %251 = getelementptr inbounds nuw i8, ptr %10, i32 64
  %252 = load i32, ptr %2, align 4
  %253 = getelementptr inbounds nuw i32, ptr %251, i32 %252
  store i32 %45, ptr %253, align 4
  %254 = load i64, ptr %10, align 8
  %255 = add i64 %254, 1
  store i64 %255, ptr %10, align 8
  %256 = ptrtoint ptr %44 to i32
  %257 = zext i32 %256 to i64
  br label %258
258:
  %259 = phi i64 [ 0, %17 ], [ 0, %8 ], [ %257, %250 ], [ 0, %30 ]
  ret i64 %259
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
  %19 = trunc i64 %18 to i32
  store i32 %19, ptr %15, align 8
  %20 = getelementptr inbounds nuw i8, ptr %15, i32 4
  store i32 0, ptr %20, align 4
  %21 = load i32, ptr %10, align 4
  %22 = zext i32 %21 to i64
  %23 = add nuw nsw i64 %22, 1
  store i64 %23, ptr %17, align 8
  %24 = load i64, ptr %9, align 8
  %25 = add i64 %24, -1
  store i64 %25, ptr %9, align 8
  %26 = getelementptr inbounds nuw i8, ptr %9, i32 64
  %27 = add i32 %16, 1
  %28 = and i32 %27, %3
  %29 = load i32, ptr %1, align 4
  %30 = icmp eq i32 %28, %29
  br i1 %30, label %58, label %31
31:
  %32 = phi i32 [ %53, %52 ], [ %29, %7 ]
  %33 = phi i32 [ %56, %52 ], [ %28, %7 ]
  %34 = phi i32 [ %54, %52 ], [ %16, %7 ]
  %35 = getelementptr inbounds nuw i32, ptr %26, i32 %33
  %36 = load i32, ptr %35, align 4
  %37 = add i32 %36, -1
  %38 = icmp ult i32 %37, %6
  br i1 %38, label %39, label %58
39:
  %40 = mul i32 %37, %5
  %41 = add i32 %40, %12
  %42 = inttoptr i32 %41 to ptr
  %43 = load i32, ptr %42, align 8
  %44 = sub i32 %33, %43
  %45 = and i32 %44, %3
  %46 = sub i32 %33, %34
  %47 = and i32 %46, %3
  %48 = icmp ult i32 %45, %47
  br i1 %48, label %52, label %49
49:
  %50 = getelementptr inbounds nuw i32, ptr %26, i32 %34
  store i32 %36, ptr %50, align 4
  %51 = load i32, ptr %1, align 4
  br label %52
52:
  %53 = phi i32 [ %51, %49 ], [ %32, %39 ]
  %54 = phi i32 [ %33, %49 ], [ %34, %39 ]
  %55 = add i32 %33, 1
  %56 = and i32 %55, %3
  %57 = icmp eq i32 %56, %53
  br i1 %57, label %58, label %31
58:
  %59 = phi i32 [ %16, %7 ], [ %34, %31 ], [ %54, %52 ]
  %60 = getelementptr inbounds nuw i32, ptr %26, i32 %59
  store i32 0, ptr %60, align 4
  ret void
}
