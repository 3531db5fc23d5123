%struct.block = type { i64, i64, i64 }
%struct.timespec = type { i64, i64 }
declare i64 @llvm.readcyclecounter()
declare void @llvm.assume(i1 )
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

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

define internal preserve_mostcc i64 @read_elsewhere(i64 %0, i64 %1, i64 %2, ptr %3, i64 %4) #2 {
  %6 = icmp eq i64 %4, 0
  br i1 %6, label %16, label %7
7:
  %8 = inttoptr i64 %1 to ptr
  %9 = call i32 %8(i64 %0, i64 %2, ptr %3, i64 %4)
  %10 = icmp eq i32 %9, 0
  br i1 %10, label %16, label %11
11:
  %12 = phi i64 [ %14, %11 ], [ 0, %7 ]
  %13 = getelementptr inbounds nuw i8, ptr %3, i64 %12
  store volatile i8 0, ptr %13, align 1
  %14 = add nuw i64 %12, 1
  %15 = icmp eq i64 %14, %4
  br i1 %15, label %16, label %11
16:
  %17 = phi i64 [ 0, %5 ], [ 0, %7 ], [ -14, %11 ]
  ret i64 %17
}

define internal i64 @read(ptr %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5) #0 {
  %7 = inttoptr i64 %3 to ptr
  %8 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %9 = load i64, ptr %8, align 8
  %10 = inttoptr i64 %9 to ptr
  %11 = load i64, ptr %7, align 8
  %12 = icmp eq i64 %11, 0
  br i1 %12, label %62, label %16
13:
  %14 = add nuw i64 %17, 1
  %15 = icmp eq i64 %14, %11
  br i1 %15, label %62, label %16
16:
  %17 = phi i64 [ %14, %13 ], [ 0, %6 ]
  %18 = getelementptr inbounds nuw %struct.block, ptr %10, i64 %17
  %19 = load i64, ptr %18, align 8
  %20 = sub i64 %2, %19
  %21 = getelementptr inbounds nuw i8, ptr %18, i64 8
  %22 = load i64, ptr %21, align 8
  %23 = icmp uge i64 %20, %22
  %24 = sub nuw i64 %22, %20
  %25 = icmp ugt i64 %1, %24
  %26 = select i1 %23, i1 true, i1 %25
  br i1 %26, label %13, label %27
27:
  %28 = getelementptr inbounds nuw i8, ptr %18, i64 16
  %29 = load i64, ptr %28, align 8
  %30 = add i64 %29, %20
  %31 = icmp eq i64 %30, 0
  br i1 %31, label %62, label %32
32:
  %33 = inttoptr i64 %30 to ptr
  %34 = icmp eq i64 %1, 8
  br i1 %34, label %37, label %35
35:
  %36 = icmp ugt i64 %1, 7
  br i1 %36, label %44, label %39
37:
  %38 = load i64, ptr %33, align 1
  store i64 %38, ptr %0, align 1
  br label %64
39:
  %40 = phi ptr [ %0, %35 ], [ %50, %44 ]
  %41 = phi ptr [ %33, %35 ], [ %51, %44 ]
  %42 = phi i64 [ %1, %35 ], [ %49, %44 ]
  %43 = icmp eq i64 %42, 0
  br i1 %43, label %64, label %53
44:
  %45 = phi i64 [ %49, %44 ], [ %1, %35 ]
  %46 = phi ptr [ %51, %44 ], [ %33, %35 ]
  %47 = phi ptr [ %50, %44 ], [ %0, %35 ]
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
  br i1 %61, label %64, label %53
62:
  %63 = call preserve_mostcc i64 @read_elsewhere(i64 %4, i64 %5, i64 %2, ptr %0, i64 %1)
  br label %64
64:
  %65 = phi i64 [ %63, %62 ], [ 0, %37 ], [ 0, %39 ], [ 0, %53 ]
  ret i64 %65
}

define internal i64 @read_string(ptr %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5) #0 {
  %7 = alloca [256 x i8], align 16
  %8 = add i64 %1, -1
  %9 = icmp eq i64 %1, 0
  br i1 %9, label %99, label %10
10:
  %11 = icmp eq i64 %8, 0
  br i1 %11, label %97, label %12
12:
  %13 = inttoptr i64 %3 to ptr
  %14 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %15 = inttoptr i64 %5 to ptr
  br label %19
16:
  %17 = phi i64 [ %83, %81 ], [ %63, %95 ]
  %18 = icmp ult i64 %17, %8
  br i1 %18, label %19, label %97
19:
  %20 = phi i64 [ 0, %12 ], [ %17, %16 ]
  %21 = add i64 %20, %2
  %22 = and i64 %21, 255
  %23 = sub nuw nsw i64 256, %22
  %24 = sub nuw i64 %8, %20
  %25 = call i64 @llvm.umin.i64(i64 %24, i64 %23)
  %26 = load i64, ptr %14, align 8
  %27 = inttoptr i64 %26 to ptr
  %28 = load i64, ptr %13, align 8
  %29 = icmp eq i64 %28, 0
  br i1 %29, label %33, label %35
30:
  %31 = add nuw i64 %36, 1
  %32 = icmp eq i64 %31, %28
  br i1 %32, label %33, label %35
33:
  %34 = add i64 %25, %20
  br label %53
35:
  %36 = phi i64 [ %31, %30 ], [ 0, %19 ]
  %37 = getelementptr inbounds nuw %struct.block, ptr %27, i64 %36
  %38 = load i64, ptr %37, align 8
  %39 = sub i64 %21, %38
  %40 = getelementptr inbounds nuw i8, ptr %37, i64 8
  %41 = load i64, ptr %40, align 8
  %42 = icmp uge i64 %39, %41
  %43 = sub nuw i64 %41, %39
  %44 = icmp ugt i64 %25, %43
  %45 = select i1 %42, i1 true, i1 %44
  br i1 %45, label %30, label %46
46:
  %47 = getelementptr inbounds nuw i8, ptr %37, i64 16
  %48 = load i64, ptr %47, align 8
  %49 = add i64 %48, %39
  %50 = inttoptr i64 %49 to ptr
  %51 = add i64 %25, %20
  %52 = icmp eq i64 %49, 0
  br i1 %52, label %53, label %62
53:
  %54 = phi i64 [ %34, %33 ], [ %51, %46 ]
  %55 = call i32 %15(i64 %4, i64 %21, ptr %7, i64 %25)
  %56 = icmp eq i32 %55, 0
  br i1 %56, label %62, label %57
57:
  %58 = phi i64 [ %60, %57 ], [ 0, %53 ]
  %59 = getelementptr inbounds nuw i8, ptr %0, i64 %58
  store volatile i8 0, ptr %59, align 1
  %60 = add nuw i64 %58, 1
  %61 = icmp eq i64 %60, %1
  br i1 %61, label %99, label %57
62:
  %63 = phi i64 [ %51, %46 ], [ %54, %53 ]
  %64 = phi ptr [ %50, %46 ], [ %7, %53 ]
  %65 = sub i64 %63, %20
  %66 = icmp ugt i64 %65, 7
  br i1 %66, label %67, label %81
67:
  %68 = phi i64 [ %78, %75 ], [ %20, %62 ]
  %69 = phi ptr [ %77, %75 ], [ %64, %62 ]
  %70 = load i64, ptr %69, align 1
  %71 = sub i64 72340172838076672, %70
  %72 = or i64 %71, %70
  %73 = and i64 %72, -9187201950435737472
  %74 = icmp eq i64 %73, -9187201950435737472
  br i1 %74, label %75, label %81
75:
  %76 = getelementptr inbounds nuw i8, ptr %0, i64 %68
  store i64 %70, ptr %76, align 1
  %77 = getelementptr inbounds nuw i8, ptr %69, i64 8
  %78 = add i64 %68, 8
  %79 = sub i64 %63, %78
  %80 = icmp ugt i64 %79, 7
  br i1 %80, label %67, label %81
81:
  %82 = phi ptr [ %64, %62 ], [ %69, %67 ], [ %77, %75 ]
  %83 = phi i64 [ %20, %62 ], [ %68, %67 ], [ %78, %75 ]
  %84 = ptrtoint ptr %82 to i64
  %85 = sub i64 %84, %83
  %86 = inttoptr i64 %85 to ptr
  %87 = icmp ult i64 %83, %63
  br i1 %87, label %88, label %16
88:
  %89 = phi i64 [ %94, %95 ], [ %83, %81 ]
  %90 = getelementptr inbounds nuw i8, ptr %86, i64 %89
  %91 = load i8, ptr %90, align 1
  %92 = getelementptr inbounds nuw i8, ptr %0, i64 %89
  store i8 %91, ptr %92, align 1
  %93 = icmp eq i8 %91, 0
  %94 = add i64 %89, 1
  br i1 %93, label %99, label %95
95:
  %96 = icmp eq i64 %94, %63
  br i1 %96, label %16, label %88
97:
  %98 = getelementptr inbounds nuw i8, ptr %0, i64 %8
  store i8 0, ptr %98, align 1
  br label %99
99:
  %100 = phi i64 [ -14, %57 ], [ 0, %6 ], [ %1, %97 ], [ %94, %88 ]
  ret i64 %100
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

define internal i64 @engine_register(i64 %0, i64 %1, i32 %2) #0 {
  %4 = alloca [8 x i64], align 16
  store i64 0, ptr %4, align 16
  %5 = inttoptr i64 %1 to ptr
  %6 = call i32 %5(i64 %0, i32 %2, ptr %4)
  %7 = load i64, ptr %4, align 16
  ret i64 %7
}

define internal preserve_mostcc i64 @read_clock(ptr %0) #2 {
  %2 = alloca %struct.timespec, align 8
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %4 = load i64, ptr %3, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %8, label %6
6:
  %7 = call i64 @llvm.readcyclecounter()
  br label %8
8:
  %9 = phi i64 [ %7, %6 ], [ 0, %1 ]
  %10 = load i64, ptr %0, align 8
  %11 = inttoptr i64 %10 to ptr
  %12 = call i32 %11(i32 1, ptr %2)
  %13 = load i64, ptr %2, align 8
  %14 = mul nsw i64 %13, 1000000000
  %15 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %16 = load i64, ptr %15, align 8
  %17 = add nsw i64 %14, %16
  %18 = load i64, ptr %3, align 8
  %19 = icmp eq i64 %18, 0
  br i1 %19, label %43, label %20
20:
  %21 = call i64 @llvm.readcyclecounter()
  %22 = sub i64 %21, %9
  %23 = icmp ult i64 %22, 500
  br i1 %23, label %24, label %43
24:
  %25 = lshr i64 %22, 1
  %26 = add i64 %25, %9
  %27 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %28 = load i64, ptr %27, align 8
  %29 = sub i64 %26, %28
  %30 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %31 = load i64, ptr %30, align 8
  %32 = sub i64 %17, %31
  %33 = icmp ult i64 %29, 2097152
  br i1 %33, label %43, label %34
34:
  %35 = icmp ult i64 %29, 2147483648
  %36 = icmp ult i64 %32, 2147483648
  %37 = select i1 %35, i1 %36, i1 false
  br i1 %37, label %38, label %42
38:
  %39 = shl nuw nsw i64 %32, 32
  %40 = udiv i64 %39, %29
  %41 = getelementptr inbounds nuw i8, ptr %0, i64 32
  store i64 %40, ptr %41, align 8
  br label %42
42:
  store i64 %26, ptr %27, align 8
  store i64 %17, ptr %30, align 8
  br label %43
43:
  ret i64 %17
}

define internal i64 @clock(i64 %0) #0 {
  %2 = inttoptr i64 %0 to ptr
  %3 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %4 = load i64, ptr %3, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %19, label %6
6:
  %7 = call i64 @llvm.readcyclecounter()
  %8 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %9 = load i64, ptr %8, align 8
  %10 = sub i64 %7, %9
  %11 = icmp ult i64 %10, 2097152
  br i1 %11, label %12, label %19
12:
  %13 = getelementptr inbounds nuw i8, ptr %2, i64 24
  %14 = load i64, ptr %13, align 8
  %15 = load i64, ptr %3, align 8
  %16 = mul i64 %15, %10
  %17 = lshr i64 %16, 32
  %18 = add i64 %17, %14
  br label %21
19:
  %20 = call preserve_mostcc i64 @read_clock(ptr %2)
  br label %21
21:
  %22 = phi i64 [ %18, %12 ], [ %20, %19 ]
  %23 = getelementptr inbounds nuw i8, ptr %2, i64 40
  %24 = load i64, ptr %23, align 8
  %25 = call i64 @llvm.umax.i64(i64 %22, i64 %24)
  store i64 %25, ptr %23, align 8
  ret i64 %25
}

define internal i64 @reserve(i64 %0, i64 %1, i64 %2, i64 %3, i32 %4) #1 {
  %6 = inttoptr i64 %0 to ptr
  %7 = add i64 %1, 15
  %8 = and i64 %7, -8
  %9 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %10 = load i64, ptr %9, align 8
  %11 = add i64 %10, %8
  %12 = icmp ugt i64 %8, %3
  br i1 %12, label %54, label %13
13:
  %14 = icmp eq i32 %4, 0
  %15 = getelementptr inbounds nuw i8, ptr %6, i64 64
  %16 = add i64 %3, -8
  %17 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %18 = load atomic i64, ptr %6 acquire, align 8
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
  store atomic i64 %11, ptr %9 release, align 8
  %28 = getelementptr inbounds nuw i8, ptr %23, i64 8
  %29 = ptrtoint ptr %28 to i64
  br label %58
30:
  %31 = phi i64 [ %51, %45 ], [ %18, %13 ]
  %32 = sub i64 %10, %31
  %33 = icmp ugt i64 %32, %3
  %34 = select i1 %14, i1 true, i1 %33
  br i1 %34, label %54, label %35
35:
  %36 = and i64 %31, %16
  %37 = getelementptr inbounds nuw i8, ptr %15, i64 %36
  %38 = load i32, ptr %37, align 4
  %39 = icmp sgt i32 %38, -1
  br i1 %39, label %40, label %54
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
  store atomic i64 %50, ptr %6 release, align 8
  %51 = load atomic i64, ptr %6 acquire, align 8
  %52 = sub i64 %11, %51
  %53 = icmp ugt i64 %52, %3
  br i1 %53, label %30, label %21
54:
  %55 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %56 = load i64, ptr %55, align 8
  %57 = add i64 %56, 1
  store i64 %57, ptr %55, align 8
  br label %58
58:
  %59 = phi i64 [ %29, %21 ], [ 0, %54 ]
  ret i64 %59
}

define internal void @commit(i64 %0, i32 %1) #0 {
  %3 = add i64 %0, -8
  %4 = inttoptr i64 %3 to ptr
  %5 = load i32, ptr %4, align 4
  %6 = and i32 %5, 2147483647
  %7 = or i32 %6, %1
  store atomic i32 %7, ptr %4 release, align 4
  ret void
}

define internal i64 @table_find(i64 %0, ptr %1, ptr %2, i64 %3, i32 %4, i64 %5, i64 %6, i64 %7, i64 %8) #1 {
  %10 = icmp eq i32 %4, 0
  br i1 %10, label %73, label %11
11:
  %12 = load i64, ptr %1, align 8
  %13 = xor i64 %12, %3
  %14 = mul i64 %13, -7046029254386353131
  %15 = lshr i64 %14, 29
  %16 = xor i64 %15, %14
  %17 = icmp eq i32 %4, 1
  br i1 %17, label %73, label %18
18:
  %19 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %20 = load i64, ptr %19, align 8
  %21 = xor i64 %20, %16
  %22 = mul i64 %21, -7046029254386353131
  %23 = lshr i64 %22, 29
  %24 = xor i64 %23, %22
  %25 = icmp ugt i32 %4, 2
  br i1 %25, label %26, label %73
26:
  %27 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %28 = load i64, ptr %27, align 8
  %29 = xor i64 %28, %24
  %30 = mul i64 %29, -7046029254386353131
  %31 = lshr i64 %30, 29
  %32 = xor i64 %31, %30
  %33 = icmp eq i32 %4, 3
  br i1 %33, label %73, label %34
34:
  %35 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %36 = load i64, ptr %35, align 8
  %37 = xor i64 %36, %32
  %38 = mul i64 %37, -7046029254386353131
  %39 = lshr i64 %38, 29
  %40 = xor i64 %39, %38
  %41 = icmp ugt i32 %4, 4
  br i1 %41, label %42, label %73
42:
  %43 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %44 = load i64, ptr %43, align 8
  %45 = xor i64 %44, %40
  %46 = mul i64 %45, -7046029254386353131
  %47 = lshr i64 %46, 29
  %48 = xor i64 %47, %46
  %49 = icmp eq i32 %4, 5
  br i1 %49, label %73, label %50
50:
  %51 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %52 = load i64, ptr %51, align 8
  %53 = xor i64 %52, %48
  %54 = mul i64 %53, -7046029254386353131
  %55 = lshr i64 %54, 29
  %56 = xor i64 %55, %54
  %57 = icmp ugt i32 %4, 6
  br i1 %57, label %58, label %73
58:
  %59 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %60 = load i64, ptr %59, align 8
  %61 = xor i64 %60, %56
  %62 = mul i64 %61, -7046029254386353131
  %63 = lshr i64 %62, 29
  %64 = xor i64 %63, %62
  %65 = icmp eq i32 %4, 7
  br i1 %65, label %73, label %66
66:
  %67 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %68 = load i64, ptr %67, align 8
  %69 = xor i64 %68, %64
  %70 = mul i64 %69, -7046029254386353131
  %71 = lshr i64 %70, 29
  %72 = xor i64 %71, %70
  br label %73
73:
  %74 = phi i1 [ true, %66 ], [ false, %58 ], [ false, %42 ], [ false, %26 ], [ false, %9 ], [ false, %11 ], [ false, %18 ], [ false, %34 ], [ false, %50 ]
  %75 = phi i1 [ true, %66 ], [ true, %58 ], [ false, %42 ], [ false, %26 ], [ false, %9 ], [ false, %11 ], [ false, %18 ], [ false, %34 ], [ true, %50 ]
  %76 = phi i1 [ true, %66 ], [ true, %58 ], [ true, %42 ], [ false, %26 ], [ false, %9 ], [ false, %11 ], [ false, %18 ], [ true, %34 ], [ true, %50 ]
  %77 = phi i1 [ true, %66 ], [ true, %58 ], [ true, %42 ], [ true, %26 ], [ false, %9 ], [ false, %11 ], [ true, %18 ], [ true, %34 ], [ true, %50 ]
  %78 = phi i1 [ true, %66 ], [ true, %58 ], [ true, %42 ], [ true, %26 ], [ false, %9 ], [ false, %11 ], [ false, %18 ], [ true, %34 ], [ true, %50 ]
  %79 = phi i1 [ true, %66 ], [ true, %58 ], [ true, %42 ], [ false, %26 ], [ false, %9 ], [ false, %11 ], [ false, %18 ], [ false, %34 ], [ true, %50 ]
  %80 = phi i1 [ true, %66 ], [ true, %58 ], [ false, %42 ], [ false, %26 ], [ false, %9 ], [ false, %11 ], [ false, %18 ], [ false, %34 ], [ false, %50 ]
  %81 = phi i64 [ %72, %66 ], [ %64, %58 ], [ %48, %42 ], [ %32, %26 ], [ %3, %9 ], [ %16, %11 ], [ %24, %18 ], [ %40, %34 ], [ %56, %50 ]
  %82 = inttoptr i64 %0 to ptr
  %83 = lshr i64 %81, 32
  %84 = and i64 %83, %5
  %85 = getelementptr inbounds nuw i8, ptr %2, i64 8
  store i64 %84, ptr %85, align 8
  %86 = getelementptr inbounds nuw i8, ptr %82, i64 64
  %87 = getelementptr inbounds nuw i32, ptr %86, i64 %84
  %88 = load i32, ptr %87, align 4
  %89 = icmp eq i32 %88, 0
  br i1 %89, label %99, label %90
90:
  %91 = add i64 %6, %0
  %92 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %93 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %94 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %95 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %96 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %97 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %98 = getelementptr inbounds nuw i8, ptr %1, i64 56
  br label %101
99:
  %100 = phi i64 [ %84, %73 ], [ %179, %177 ]
  store i64 %100, ptr %2, align 8
  br label %183
101:
  %102 = phi i32 [ %88, %90 ], [ %181, %177 ]
  %103 = phi i64 [ %84, %90 ], [ %179, %177 ]
  %104 = zext i32 %102 to i64
  %105 = add nsw i64 %104, -1
  %106 = mul i64 %105, %7
  %107 = add i64 %91, %106
  %108 = inttoptr i64 %107 to ptr
  br i1 %10, label %115, label %109
109:
  %110 = getelementptr inbounds nuw i8, ptr %108, i64 8
  %111 = load i64, ptr %110, align 8
  %112 = load i64, ptr %1, align 8
  %113 = icmp eq i64 %111, %112
  %114 = zext i1 %113 to i32
  br label %115
115:
  %116 = phi i32 [ %114, %109 ], [ 1, %101 ]
  br i1 %77, label %117, label %123
117:
  %118 = getelementptr inbounds nuw i8, ptr %108, i64 16
  %119 = load i64, ptr %118, align 8
  %120 = load i64, ptr %92, align 8
  %121 = icmp eq i64 %119, %120
  %122 = select i1 %121, i32 %116, i32 0
  br label %123
123:
  %124 = phi i32 [ %122, %117 ], [ %116, %115 ]
  br i1 %78, label %125, label %131
125:
  %126 = getelementptr inbounds nuw i8, ptr %108, i64 24
  %127 = load i64, ptr %126, align 8
  %128 = load i64, ptr %93, align 8
  %129 = icmp eq i64 %127, %128
  %130 = select i1 %129, i32 %124, i32 0
  br label %131
131:
  %132 = phi i32 [ %130, %125 ], [ %124, %123 ]
  br i1 %76, label %133, label %139
133:
  %134 = getelementptr inbounds nuw i8, ptr %108, i64 32
  %135 = load i64, ptr %134, align 8
  %136 = load i64, ptr %94, align 8
  %137 = icmp eq i64 %135, %136
  %138 = select i1 %137, i32 %132, i32 0
  br label %139
139:
  %140 = phi i32 [ %138, %133 ], [ %132, %131 ]
  br i1 %79, label %141, label %147
141:
  %142 = getelementptr inbounds nuw i8, ptr %108, i64 40
  %143 = load i64, ptr %142, align 8
  %144 = load i64, ptr %95, align 8
  %145 = icmp eq i64 %143, %144
  %146 = select i1 %145, i32 %140, i32 0
  br label %147
147:
  %148 = phi i32 [ %146, %141 ], [ %140, %139 ]
  br i1 %75, label %149, label %155
149:
  %150 = getelementptr inbounds nuw i8, ptr %108, i64 48
  %151 = load i64, ptr %150, align 8
  %152 = load i64, ptr %96, align 8
  %153 = icmp eq i64 %151, %152
  %154 = select i1 %153, i32 %148, i32 0
  br label %155
155:
  %156 = phi i32 [ %154, %149 ], [ %148, %147 ]
  br i1 %80, label %157, label %163
157:
  %158 = getelementptr inbounds nuw i8, ptr %108, i64 56
  %159 = load i64, ptr %158, align 8
  %160 = load i64, ptr %97, align 8
  %161 = icmp eq i64 %159, %160
  %162 = select i1 %161, i32 %156, i32 0
  br label %163
163:
  %164 = phi i32 [ %162, %157 ], [ %156, %155 ]
  br i1 %74, label %165, label %172
165:
  %166 = getelementptr inbounds nuw i8, ptr %108, i64 64
  %167 = load i64, ptr %166, align 8
  %168 = load i64, ptr %98, align 8
  %169 = icmp ne i64 %167, %168
  %170 = icmp eq i32 %164, 0
  %171 = select i1 %169, i1 true, i1 %170
  br i1 %171, label %177, label %174
172:
  %173 = icmp eq i32 %164, 0
  br i1 %173, label %177, label %174
174:
  store i64 %103, ptr %2, align 8
  %175 = getelementptr inbounds nuw i8, ptr %2, i64 16
  store i64 %105, ptr %175, align 8
  %176 = icmp ne i64 %107, 0
  call void @llvm.assume(i1 %176)
  br label %183
177:
  %178 = add i64 %103, 1
  %179 = and i64 %178, %5
  %180 = getelementptr inbounds nuw i32, ptr %86, i64 %179
  %181 = load i32, ptr %180, align 4
  %182 = icmp eq i32 %181, 0
  br i1 %182, label %99, label %101
183:
  %184 = phi i64 [ %107, %174 ], [ 0, %99 ]
  ret i64 %184
}

define internal i64 @table_insert(i64 %0, ptr %1, ptr %2, i32 %3, i64 %4, i64 %5, i64 %6, i64 %7) #1 {
  %9 = inttoptr i64 %0 to ptr
  %10 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %11 = load i64, ptr %10, align 8
  %12 = icmp eq i64 %11, 0
  br i1 %12, label %21, label %13
13:
  %14 = add i64 %11, -1
  %15 = add i64 %5, %0
  %16 = mul i64 %14, %6
  %17 = add i64 %15, %16
  %18 = inttoptr i64 %17 to ptr
  %19 = load i32, ptr %18, align 8
  %20 = zext i32 %19 to i64
  store i64 %20, ptr %10, align 8
  br label %31
21:
  %22 = getelementptr inbounds nuw i8, ptr %9, i64 16
  %23 = load i64, ptr %22, align 8
  %24 = icmp ult i64 %23, %7
  br i1 %24, label %25, label %232
25:
  %26 = add i64 %5, %0
  %27 = mul i64 %23, %6
  %28 = add i64 %26, %27
  %29 = inttoptr i64 %28 to ptr
  %30 = add nuw i64 %23, 1
  store i64 %30, ptr %22, align 8
  br label %31
31:
  %32 = phi ptr [ %18, %13 ], [ %29, %25 ]
  %33 = phi i64 [ %14, %13 ], [ %23, %25 ]
  %34 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %35 = load i64, ptr %34, align 8
  %36 = trunc i64 %35 to i32
  store i32 %36, ptr %32, align 8
  %37 = getelementptr inbounds nuw i8, ptr %32, i64 4
  store i32 1, ptr %37, align 4
  %38 = getelementptr inbounds nuw i8, ptr %32, i64 8
  %39 = icmp ugt i64 %6, 8
  br i1 %39, label %40, label %223
40:
  %41 = icmp eq i32 %3, 0
  br i1 %41, label %45, label %42
42:
  %43 = load i64, ptr %1, align 8
  store i64 %43, ptr %38, align 8
  %44 = icmp ugt i64 %6, 16
  br i1 %44, label %47, label %223
45:
  store i64 0, ptr %38, align 8
  %46 = icmp ugt i64 %6, 16
  br i1 %46, label %56, label %223
47:
  %48 = icmp eq i32 %3, 1
  br i1 %48, label %52, label %49
49:
  %50 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %51 = load i64, ptr %50, align 8
  br label %52
52:
  %53 = phi i64 [ %51, %49 ], [ 0, %47 ]
  %54 = getelementptr inbounds nuw i8, ptr %32, i64 16
  store i64 %53, ptr %54, align 8
  %55 = icmp ugt i64 %6, 24
  br i1 %55, label %59, label %223
56:
  %57 = getelementptr inbounds nuw i8, ptr %32, i64 16
  store i64 0, ptr %57, align 8
  %58 = icmp ugt i64 %6, 24
  br i1 %58, label %68, label %223
59:
  %60 = icmp ugt i32 %3, 2
  br i1 %60, label %61, label %64
61:
  %62 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %63 = load i64, ptr %62, align 8
  br label %64
64:
  %65 = phi i64 [ %63, %61 ], [ 0, %59 ]
  %66 = getelementptr inbounds nuw i8, ptr %32, i64 24
  store i64 %65, ptr %66, align 8
  %67 = icmp ugt i64 %6, 32
  br i1 %67, label %71, label %223
68:
  %69 = getelementptr inbounds nuw i8, ptr %32, i64 24
  store i64 0, ptr %69, align 8
  %70 = icmp ugt i64 %6, 32
  br i1 %70, label %80, label %223
71:
  %72 = icmp ugt i32 %3, 3
  br i1 %72, label %73, label %76
73:
  %74 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %75 = load i64, ptr %74, align 8
  br label %76
76:
  %77 = phi i64 [ %75, %73 ], [ 0, %71 ]
  %78 = getelementptr inbounds nuw i8, ptr %32, i64 32
  store i64 %77, ptr %78, align 8
  %79 = icmp ugt i64 %6, 40
  br i1 %79, label %83, label %223
80:
  %81 = getelementptr inbounds nuw i8, ptr %32, i64 32
  store i64 0, ptr %81, align 8
  %82 = icmp ugt i64 %6, 40
  br i1 %82, label %92, label %223
83:
  %84 = icmp ugt i32 %3, 4
  br i1 %84, label %85, label %88
85:
  %86 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %87 = load i64, ptr %86, align 8
  br label %88
88:
  %89 = phi i64 [ %87, %85 ], [ 0, %83 ]
  %90 = getelementptr inbounds nuw i8, ptr %32, i64 40
  store i64 %89, ptr %90, align 8
  %91 = icmp ugt i64 %6, 48
  br i1 %91, label %95, label %223
92:
  %93 = getelementptr inbounds nuw i8, ptr %32, i64 40
  store i64 0, ptr %93, align 8
  %94 = icmp ugt i64 %6, 48
  br i1 %94, label %104, label %223
95:
  %96 = icmp ugt i32 %3, 5
  br i1 %96, label %97, label %100
97:
  %98 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %99 = load i64, ptr %98, align 8
  br label %100
100:
  %101 = phi i64 [ %99, %97 ], [ 0, %95 ]
  %102 = getelementptr inbounds nuw i8, ptr %32, i64 48
  store i64 %101, ptr %102, align 8
  %103 = icmp ugt i64 %6, 56
  br i1 %103, label %107, label %223
104:
  %105 = getelementptr inbounds nuw i8, ptr %32, i64 48
  store i64 0, ptr %105, align 8
  %106 = icmp ugt i64 %6, 56
  br i1 %106, label %116, label %223
107:
  %108 = icmp ugt i32 %3, 6
  br i1 %108, label %109, label %112
109:
  %110 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %111 = load i64, ptr %110, align 8
  br label %112
112:
  %113 = phi i64 [ %111, %109 ], [ 0, %107 ]
  %114 = getelementptr inbounds nuw i8, ptr %32, i64 56
  store i64 %113, ptr %114, align 8
  %115 = icmp ugt i64 %6, 64
  br i1 %115, label %119, label %223
116:
  %117 = getelementptr inbounds nuw i8, ptr %32, i64 56
  store i64 0, ptr %117, align 8
  %118 = icmp ugt i64 %6, 64
  br i1 %118, label %128, label %223
119:
  %120 = icmp ugt i32 %3, 7
  br i1 %120, label %121, label %124
121:
  %122 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %123 = load i64, ptr %122, align 8
  br label %124
124:
  %125 = phi i64 [ %123, %121 ], [ 0, %119 ]
  %126 = getelementptr inbounds nuw i8, ptr %32, i64 64
  store i64 %125, ptr %126, align 8
  %127 = icmp ugt i64 %6, 72
  br i1 %127, label %131, label %223
128:
  %129 = getelementptr inbounds nuw i8, ptr %32, i64 64
  store i64 0, ptr %129, align 8
  %130 = icmp ugt i64 %6, 72
  br i1 %130, label %140, label %223
131:
  %132 = icmp ugt i32 %3, 8
  br i1 %132, label %133, label %136
133:
  %134 = getelementptr inbounds nuw i8, ptr %1, i64 64
  %135 = load i64, ptr %134, align 8
  br label %136
136:
  %137 = phi i64 [ %135, %133 ], [ 0, %131 ]
  %138 = getelementptr inbounds nuw i8, ptr %32, i64 72
  store i64 %137, ptr %138, align 8
  %139 = icmp ugt i64 %6, 80
  br i1 %139, label %143, label %223
140:
  %141 = getelementptr inbounds nuw i8, ptr %32, i64 72
  store i64 0, ptr %141, align 8
  %142 = icmp ugt i64 %6, 80
  br i1 %142, label %152, label %223
143:
  %144 = icmp ugt i32 %3, 9
  br i1 %144, label %145, label %148
145:
  %146 = getelementptr inbounds nuw i8, ptr %1, i64 72
  %147 = load i64, ptr %146, align 8
  br label %148
148:
  %149 = phi i64 [ %147, %145 ], [ 0, %143 ]
  %150 = getelementptr inbounds nuw i8, ptr %32, i64 80
  store i64 %149, ptr %150, align 8
  %151 = icmp ugt i64 %6, 88
  br i1 %151, label %155, label %223
152:
  %153 = getelementptr inbounds nuw i8, ptr %32, i64 80
  store i64 0, ptr %153, align 8
  %154 = icmp ugt i64 %6, 88
  br i1 %154, label %164, label %223
155:
  %156 = icmp ugt i32 %3, 10
  br i1 %156, label %157, label %160
157:
  %158 = getelementptr inbounds nuw i8, ptr %1, i64 80
  %159 = load i64, ptr %158, align 8
  br label %160
160:
  %161 = phi i64 [ %159, %157 ], [ 0, %155 ]
  %162 = getelementptr inbounds nuw i8, ptr %32, i64 88
  store i64 %161, ptr %162, align 8
  %163 = icmp ugt i64 %6, 96
  br i1 %163, label %167, label %223
164:
  %165 = getelementptr inbounds nuw i8, ptr %32, i64 88
  store i64 0, ptr %165, align 8
  %166 = icmp ugt i64 %6, 96
  br i1 %166, label %176, label %223
167:
  %168 = icmp ugt i32 %3, 11
  br i1 %168, label %169, label %172
169:
  %170 = getelementptr inbounds nuw i8, ptr %1, i64 88
  %171 = load i64, ptr %170, align 8
  br label %172
172:
  %173 = phi i64 [ %171, %169 ], [ 0, %167 ]
  %174 = getelementptr inbounds nuw i8, ptr %32, i64 96
  store i64 %173, ptr %174, align 8
  %175 = icmp ugt i64 %6, 104
  br i1 %175, label %179, label %223
176:
  %177 = getelementptr inbounds nuw i8, ptr %32, i64 96
  store i64 0, ptr %177, align 8
  %178 = icmp ugt i64 %6, 104
  br i1 %178, label %188, label %223
179:
  %180 = icmp ugt i32 %3, 12
  br i1 %180, label %181, label %184
181:
  %182 = getelementptr inbounds nuw i8, ptr %1, i64 96
  %183 = load i64, ptr %182, align 8
  br label %184
184:
  %185 = phi i64 [ %183, %181 ], [ 0, %179 ]
  %186 = getelementptr inbounds nuw i8, ptr %32, i64 104
  store i64 %185, ptr %186, align 8
  %187 = icmp ugt i64 %6, 112
  br i1 %187, label %191, label %223
188:
  %189 = getelementptr inbounds nuw i8, ptr %32, i64 104
  store i64 0, ptr %189, align 8
  %190 = icmp ugt i64 %6, 112
  br i1 %190, label %200, label %223
191:
  %192 = icmp ugt i32 %3, 13
  br i1 %192, label %193, label %196
193:
  %194 = getelementptr inbounds nuw i8, ptr %1, i64 104
  %195 = load i64, ptr %194, align 8
  br label %196
196:
  %197 = phi i64 [ %195, %193 ], [ 0, %191 ]
  %198 = getelementptr inbounds nuw i8, ptr %32, i64 112
  store i64 %197, ptr %198, align 8
  %199 = icmp ugt i64 %6, 120
  br i1 %199, label %203, label %223
200:
  %201 = getelementptr inbounds nuw i8, ptr %32, i64 112
  store i64 0, ptr %201, align 8
  %202 = icmp ugt i64 %6, 120
  br i1 %202, label %212, label %223
203:
  %204 = icmp ugt i32 %3, 14
  br i1 %204, label %205, label %208
205:
  %206 = getelementptr inbounds nuw i8, ptr %1, i64 112
  %207 = load i64, ptr %206, align 8
  br label %208
208:
  %209 = phi i64 [ %207, %205 ], [ 0, %203 ]
  %210 = getelementptr inbounds nuw i8, ptr %32, i64 120
  store i64 %209, ptr %210, align 8
  %211 = icmp ugt i64 %6, 128
  br i1 %211, label %215, label %223
212:
  %213 = getelementptr inbounds nuw i8, ptr %32, i64 120
  store i64 0, ptr %213, align 8
  %214 = icmp ugt i64 %6, 128
  br i1 %214, label %220, label %223
215:
  %216 = icmp ugt i32 %3, 15
  br i1 %216, label %217, label %220
217:
  %218 = getelementptr inbounds nuw i8, ptr %1, i64 120
  %219 = load i64, ptr %218, align 8
  br label %220
220:
  %221 = phi i64 [ %219, %217 ], [ 0, %215 ], [ 0, %212 ]
  %222 = getelementptr inbounds nuw i8, ptr %32, i64 128
  store i64 %221, ptr %222, align 8
  br label %223
223:
  %224 = trunc i64 %33 to i32
  %225 = add i32 %224, 1
  %226 = getelementptr inbounds nuw i8, ptr %9, i64 64
  %227 = load i64, ptr %2, align 8
  %228 = getelementptr inbounds nuw i32, ptr %226, i64 %227
  store i32 %225, ptr %228, align 4
  %229 = load i64, ptr %9, align 8
  %230 = add i64 %229, 1
  store i64 %230, ptr %9, align 8
  %231 = ptrtoint ptr %32 to i64
  br label %232
232:
  %233 = phi i64 [ %231, %223 ], [ 0, %21 ]
  ret i64 %233
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
  %27 = getelementptr inbounds nuw i32, ptr %24, i64 %26
  %28 = load i32, ptr %27, align 4
  %29 = icmp eq i32 %28, 0
  br i1 %29, label %55, label %30
30:
  %31 = phi i32 [ %53, %48 ], [ %28, %7 ]
  %32 = phi i64 [ %51, %48 ], [ %26, %7 ]
  %33 = phi i64 [ %49, %48 ], [ %15, %7 ]
  %34 = zext i32 %31 to i64
  %35 = add nsw i64 %34, -1
  %36 = mul i64 %35, %5
  %37 = add i64 %36, %11
  %38 = inttoptr i64 %37 to ptr
  %39 = load i32, ptr %38, align 8
  %40 = zext i32 %39 to i64
  %41 = sub i64 %32, %40
  %42 = and i64 %41, %3
  %43 = sub i64 %32, %33
  %44 = and i64 %43, %3
  %45 = icmp ult i64 %42, %44
  br i1 %45, label %48, label %46
46:
  %47 = getelementptr inbounds nuw i32, ptr %24, i64 %33
  store i32 %31, ptr %47, align 4
  br label %48
48:
  %49 = phi i64 [ %32, %46 ], [ %33, %30 ]
  %50 = add i64 %32, 1
  %51 = and i64 %50, %3
  %52 = getelementptr inbounds nuw i32, ptr %24, i64 %51
  %53 = load i32, ptr %52, align 4
  %54 = icmp eq i32 %53, 0
  br i1 %54, label %55, label %30
55:
  %56 = phi i64 [ %15, %7 ], [ %49, %48 ]
  %57 = getelementptr inbounds nuw i32, ptr %24, i64 %56
  store i32 0, ptr %57, align 4
  ret void
}
