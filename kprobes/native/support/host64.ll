%struct.block = type { i64, i64, i64 }
%struct.timespec = type { i64, i64 }
%struct.unaligned = type { i64 }
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
  %101 = getelementptr inbounds nuw i32, ptr %100, i64 %98
  %102 = load i32, ptr %101, align 4
  %103 = icmp eq i32 %102, 0
  br i1 %103, label %113, label %104
104:
  %105 = add i64 %6, %0
  %106 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %107 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %108 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %109 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %110 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %111 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %112 = getelementptr inbounds nuw i8, ptr %1, i64 56
  br label %115
113:
  %114 = phi i64 [ %98, %86 ], [ %206, %204 ]
  store i64 %114, ptr %2, align 8
  br label %210
115:
  %116 = phi i32 [ %102, %104 ], [ %208, %204 ]
  %117 = phi i64 [ %98, %104 ], [ %206, %204 ]
  %118 = zext i32 %116 to i64
  %119 = add nsw i64 %118, -1
  %120 = mul i64 %119, %7
  %121 = add i64 %105, %120
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
  %130 = phi i32 [ %128, %124 ], [ 1, %115 ]
  br i1 %91, label %131, label %137
131:
  %132 = getelementptr inbounds nuw i8, ptr %122, i64 16
  %133 = load i64, ptr %132, align 8
  %134 = load i64, ptr %106, align 8
  %135 = icmp eq i64 %133, %134
  %136 = select i1 %135, i32 %130, i32 0
  br label %137
137:
  %138 = phi i32 [ %136, %131 ], [ %130, %129 ]
  br i1 %90, label %139, label %145
139:
  %140 = getelementptr inbounds nuw i8, ptr %122, i64 24
  %141 = load i64, ptr %140, align 8
  %142 = load i64, ptr %107, align 8
  %143 = icmp eq i64 %141, %142
  %144 = select i1 %143, i32 %138, i32 0
  br label %145
145:
  %146 = phi i32 [ %144, %139 ], [ %138, %137 ]
  br i1 %92, label %147, label %153
147:
  %148 = getelementptr inbounds nuw i8, ptr %122, i64 32
  %149 = load i64, ptr %148, align 8
  %150 = load i64, ptr %108, align 8
  %151 = icmp eq i64 %149, %150
  %152 = select i1 %151, i32 %146, i32 0
  br label %153
153:
  %154 = phi i32 [ %152, %147 ], [ %146, %145 ]
  br i1 %89, label %155, label %161
155:
  %156 = getelementptr inbounds nuw i8, ptr %122, i64 40
  %157 = load i64, ptr %156, align 8
  %158 = load i64, ptr %109, align 8
  %159 = icmp eq i64 %157, %158
  %160 = select i1 %159, i32 %154, i32 0
  br label %161
161:
  %162 = phi i32 [ %160, %155 ], [ %154, %153 ]
  br i1 %93, label %163, label %169
163:
  %164 = getelementptr inbounds nuw i8, ptr %122, i64 48
  %165 = load i64, ptr %164, align 8
  %166 = load i64, ptr %110, align 8
  %167 = icmp eq i64 %165, %166
  %168 = select i1 %167, i32 %162, i32 0
  br label %169
169:
  %170 = phi i32 [ %168, %163 ], [ %162, %161 ]
  br i1 %88, label %171, label %177
171:
  %172 = getelementptr inbounds nuw i8, ptr %122, i64 56
  %173 = load i64, ptr %172, align 8
  %174 = load i64, ptr %111, align 8
  %175 = icmp eq i64 %173, %174
  %176 = select i1 %175, i32 %170, i32 0
  br label %177
177:
  %178 = phi i32 [ %176, %171 ], [ %170, %169 ]
  br i1 %94, label %179, label %185
179:
  %180 = getelementptr inbounds nuw i8, ptr %122, i64 64
  %181 = load i64, ptr %180, align 8
  %182 = load i64, ptr %112, align 8
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
  br i1 %200, label %201, label %204
201:
  store i64 %117, ptr %2, align 8
  %202 = getelementptr inbounds nuw i8, ptr %2, i64 16
  store i64 %119, ptr %202, align 8
  %203 = icmp ne i64 %121, 0
  call void @llvm.assume(i1 %203)
  br label %210
204:
  %205 = add i64 %117, 1
  %206 = and i64 %205, %5
  %207 = getelementptr inbounds nuw i32, ptr %100, i64 %206
  %208 = load i32, ptr %207, align 4
  %209 = icmp eq i32 %208, 0
  br i1 %209, label %113, label %115
210:
  %211 = phi i64 [ %121, %201 ], [ 0, %113 ]
  ret i64 %211
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
  br i1 %24, label %25, label %248
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
  br i1 %39, label %40, label %239
40:
  %41 = icmp eq i32 %3, 0
  br i1 %41, label %45, label %42
42:
  %43 = load i64, ptr %1, align 8
  store i64 %43, ptr %38, align 8
  %44 = icmp ugt i64 %6, 16
  br i1 %44, label %47, label %239
45:
  store i64 0, ptr %38, align 8
  %46 = icmp ugt i64 %6, 16
  br i1 %46, label %56, label %239
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
  br i1 %55, label %59, label %239
56:
  %57 = getelementptr inbounds nuw i8, ptr %32, i64 16
  store i64 0, ptr %57, align 8
  %58 = icmp ugt i64 %6, 24
  br i1 %58, label %68, label %239
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
  br i1 %67, label %71, label %239
68:
  %69 = getelementptr inbounds nuw i8, ptr %32, i64 24
  store i64 0, ptr %69, align 8
  %70 = icmp ugt i64 %6, 32
  br i1 %70, label %80, label %239
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
  br i1 %79, label %83, label %239
80:
  %81 = getelementptr inbounds nuw i8, ptr %32, i64 32
  store i64 0, ptr %81, align 8
  %82 = icmp ugt i64 %6, 40
  br i1 %82, label %92, label %239
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
  br i1 %91, label %95, label %239
92:
  %93 = getelementptr inbounds nuw i8, ptr %32, i64 40
  store i64 0, ptr %93, align 8
  %94 = icmp ugt i64 %6, 48
  br i1 %94, label %104, label %239
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
  br i1 %103, label %107, label %239
104:
  %105 = getelementptr inbounds nuw i8, ptr %32, i64 48
  store i64 0, ptr %105, align 8
  %106 = icmp ugt i64 %6, 56
  br i1 %106, label %116, label %239
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
  br i1 %115, label %119, label %239
116:
  %117 = getelementptr inbounds nuw i8, ptr %32, i64 56
  store i64 0, ptr %117, align 8
  %118 = icmp ugt i64 %6, 64
  br i1 %118, label %128, label %239
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
  br i1 %127, label %131, label %239
128:
  %129 = getelementptr inbounds nuw i8, ptr %32, i64 64
  store i64 0, ptr %129, align 8
  %130 = icmp ugt i64 %6, 72
  br i1 %130, label %140, label %239
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
  br i1 %139, label %143, label %239
140:
  %141 = getelementptr inbounds nuw i8, ptr %32, i64 72
  store i64 0, ptr %141, align 8
  %142 = icmp ugt i64 %6, 80
  br i1 %142, label %152, label %239
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
  br i1 %151, label %155, label %239
152:
  %153 = getelementptr inbounds nuw i8, ptr %32, i64 80
  store i64 0, ptr %153, align 8
  %154 = icmp ugt i64 %6, 88
  br i1 %154, label %164, label %239
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
  br i1 %163, label %167, label %239
164:
  %165 = getelementptr inbounds nuw i8, ptr %32, i64 88
  store i64 0, ptr %165, align 8
  %166 = icmp ugt i64 %6, 96
  br i1 %166, label %176, label %239
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
  br i1 %175, label %179, label %239
176:
  %177 = getelementptr inbounds nuw i8, ptr %32, i64 96
  store i64 0, ptr %177, align 8
  %178 = icmp ugt i64 %6, 104
  br i1 %178, label %188, label %239
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
  br i1 %187, label %191, label %239
188:
  %189 = getelementptr inbounds nuw i8, ptr %32, i64 104
  store i64 0, ptr %189, align 8
  %190 = icmp ugt i64 %6, 112
  br i1 %190, label %200, label %239
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
  br i1 %199, label %203, label %239
200:
  %201 = getelementptr inbounds nuw i8, ptr %32, i64 112
  store i64 0, ptr %201, align 8
  %202 = icmp ugt i64 %6, 120
  br i1 %202, label %212, label %239
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
  br i1 %211, label %215, label %239
212:
  %213 = getelementptr inbounds nuw i8, ptr %32, i64 120
  store i64 0, ptr %213, align 8
  %214 = icmp ugt i64 %6, 128
  br i1 %214, label %220, label %239
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
  %223 = icmp ugt i64 %6, 136
  br i1 %223, label %224, label %239
224:
  %225 = phi i32 [ %234, %231 ], [ 16, %220 ]
  %226 = icmp ult i32 %225, %3
  %227 = zext i32 %225 to i64
  br i1 %226, label %228, label %231
228:
  %229 = getelementptr inbounds nuw i64, ptr %1, i64 %227
  %230 = load i64, ptr %229, align 8
  br label %231
231:
  %232 = phi i64 [ %230, %228 ], [ 0, %224 ]
  %233 = getelementptr inbounds nuw i64, ptr %38, i64 %227
  store i64 %232, ptr %233, align 8
  %234 = add i32 %225, 1
  %235 = shl i32 %234, 3
  %236 = zext i32 %235 to i64
  %237 = add nuw nsw i64 %236, 8
  %238 = icmp ult i64 %237, %6
  br i1 %238, label %224, label %239
239:
  %240 = trunc i64 %33 to i32
  %241 = add i32 %240, 1
  %242 = getelementptr inbounds nuw i8, ptr %9, i64 64
  %243 = load i64, ptr %2, align 8
  %244 = getelementptr inbounds nuw i32, ptr %242, i64 %243
  store i32 %241, ptr %244, align 4
  %245 = load i64, ptr %9, align 8
  %246 = add i64 %245, 1
  store i64 %246, ptr %9, align 8
  %247 = ptrtoint ptr %32 to i64
  br label %248
248:
  %249 = phi i64 [ %247, %239 ], [ 0, %21 ]
  ret i64 %249
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
