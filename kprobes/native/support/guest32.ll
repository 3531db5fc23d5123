%struct.question = type { i64, i64, i64, i64 }
%struct.block = type { i64, i64, i64 }
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

define internal i64 @table_find(i64 %0, ptr %1, ptr %2, i64 %3, i32 %4, i32 %5, i32 %6, i32 %7, i32 %8) #1 {
  %10 = icmp eq i32 %4, 0
  %11 = lshr i64 %3, 32
  %12 = trunc nuw i64 %11 to i32
  br i1 %10, label %91, label %13
13:
  %14 = load i64, ptr %1, align 8
  %15 = xor i64 %14, %3
  %16 = mul i64 %15, -7046029254386353131
  %17 = lshr i64 %16, 29
  %18 = xor i64 %17, %16
  %19 = icmp eq i32 %4, 1
  %20 = lshr i64 %18, 32
  %21 = trunc nuw i64 %20 to i32
  br i1 %19, label %91, label %22
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
  br i1 %29, label %32, label %91
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
  br i1 %39, label %91, label %42
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
  br i1 %49, label %52, label %91
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
  br i1 %59, label %91, label %62
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
  br i1 %69, label %72, label %91
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
  br i1 %79, label %91, label %82
82:
  %83 = getelementptr inbounds nuw i8, ptr %1, i32 56
  %84 = load i64, ptr %83, align 8
  %85 = xor i64 %84, %78
  %86 = mul i64 %85, -7046029254386353131
  %87 = lshr i64 %86, 61
  %88 = lshr i64 %86, 32
  %89 = xor i64 %87, %88
  %90 = trunc nuw i64 %89 to i32
  br label %91
91:
  %92 = phi i1 [ true, %82 ], [ false, %72 ], [ false, %52 ], [ false, %32 ], [ false, %9 ], [ false, %13 ], [ false, %22 ], [ false, %42 ], [ false, %62 ]
  %93 = phi i1 [ true, %82 ], [ true, %72 ], [ false, %52 ], [ false, %32 ], [ false, %9 ], [ false, %13 ], [ false, %22 ], [ false, %42 ], [ true, %62 ]
  %94 = phi i1 [ true, %82 ], [ true, %72 ], [ true, %52 ], [ false, %32 ], [ false, %9 ], [ false, %13 ], [ false, %22 ], [ true, %42 ], [ true, %62 ]
  %95 = phi i1 [ true, %82 ], [ true, %72 ], [ true, %52 ], [ true, %32 ], [ false, %9 ], [ false, %13 ], [ true, %22 ], [ true, %42 ], [ true, %62 ]
  %96 = phi i1 [ true, %82 ], [ true, %72 ], [ true, %52 ], [ true, %32 ], [ false, %9 ], [ false, %13 ], [ false, %22 ], [ true, %42 ], [ true, %62 ]
  %97 = phi i1 [ true, %82 ], [ true, %72 ], [ true, %52 ], [ false, %32 ], [ false, %9 ], [ false, %13 ], [ false, %22 ], [ false, %42 ], [ true, %62 ]
  %98 = phi i1 [ true, %82 ], [ true, %72 ], [ false, %52 ], [ false, %32 ], [ false, %9 ], [ false, %13 ], [ false, %22 ], [ false, %42 ], [ false, %62 ]
  %99 = phi i32 [ %90, %82 ], [ %81, %72 ], [ %61, %52 ], [ %41, %32 ], [ %12, %9 ], [ %21, %13 ], [ %31, %22 ], [ %51, %42 ], [ %71, %62 ]
  %100 = trunc i64 %0 to i32
  %101 = inttoptr i32 %100 to ptr
  %102 = and i32 %5, %99
  %103 = getelementptr inbounds nuw i8, ptr %2, i32 4
  store i32 %102, ptr %103, align 4
  %104 = getelementptr inbounds nuw i8, ptr %101, i32 64
  %105 = add i32 %6, %100
  %106 = getelementptr inbounds nuw i8, ptr %1, i32 8
  %107 = getelementptr inbounds nuw i8, ptr %1, i32 16
  %108 = getelementptr inbounds nuw i8, ptr %1, i32 24
  %109 = getelementptr inbounds nuw i8, ptr %1, i32 32
  %110 = getelementptr inbounds nuw i8, ptr %1, i32 40
  %111 = getelementptr inbounds nuw i8, ptr %1, i32 48
  %112 = getelementptr inbounds nuw i8, ptr %1, i32 56
  br label %113
113:
  %114 = phi i32 [ %102, %91 ], [ %196, %194 ]
  %115 = getelementptr inbounds nuw i32, ptr %104, i32 %114
  %116 = load i32, ptr %115, align 4
  %117 = icmp eq i32 %116, 0
  br i1 %117, label %118, label %119
118:
  store i32 %114, ptr %2, align 4
  br label %199
119:
  %120 = add i32 %116, -1
  %121 = icmp ult i32 %120, %8
  br i1 %121, label %122, label %194
122:
  %123 = mul i32 %120, %7
  %124 = add i32 %105, %123
  %125 = inttoptr i32 %124 to ptr
  br i1 %10, label %132, label %126
126:
  %127 = getelementptr inbounds nuw i8, ptr %125, i32 8
  %128 = load i64, ptr %127, align 8
  %129 = load i64, ptr %1, align 8
  %130 = icmp eq i64 %128, %129
  %131 = zext i1 %130 to i32
  br label %132
132:
  %133 = phi i32 [ %131, %126 ], [ 1, %122 ]
  br i1 %95, label %134, label %140
134:
  %135 = getelementptr inbounds nuw i8, ptr %125, i32 16
  %136 = load i64, ptr %135, align 8
  %137 = load i64, ptr %106, align 8
  %138 = icmp eq i64 %136, %137
  %139 = select i1 %138, i32 %133, i32 0
  br label %140
140:
  %141 = phi i32 [ %139, %134 ], [ %133, %132 ]
  br i1 %96, label %142, label %148
142:
  %143 = getelementptr inbounds nuw i8, ptr %125, i32 24
  %144 = load i64, ptr %143, align 8
  %145 = load i64, ptr %107, align 8
  %146 = icmp eq i64 %144, %145
  %147 = select i1 %146, i32 %141, i32 0
  br label %148
148:
  %149 = phi i32 [ %147, %142 ], [ %141, %140 ]
  br i1 %94, label %150, label %156
150:
  %151 = getelementptr inbounds nuw i8, ptr %125, i32 32
  %152 = load i64, ptr %151, align 8
  %153 = load i64, ptr %108, align 8
  %154 = icmp eq i64 %152, %153
  %155 = select i1 %154, i32 %149, i32 0
  br label %156
156:
  %157 = phi i32 [ %155, %150 ], [ %149, %148 ]
  br i1 %97, label %158, label %164
158:
  %159 = getelementptr inbounds nuw i8, ptr %125, i32 40
  %160 = load i64, ptr %159, align 8
  %161 = load i64, ptr %109, align 8
  %162 = icmp eq i64 %160, %161
  %163 = select i1 %162, i32 %157, i32 0
  br label %164
164:
  %165 = phi i32 [ %163, %158 ], [ %157, %156 ]
  br i1 %93, label %166, label %172
166:
  %167 = getelementptr inbounds nuw i8, ptr %125, i32 48
  %168 = load i64, ptr %167, align 8
  %169 = load i64, ptr %110, align 8
  %170 = icmp eq i64 %168, %169
  %171 = select i1 %170, i32 %165, i32 0
  br label %172
172:
  %173 = phi i32 [ %171, %166 ], [ %165, %164 ]
  br i1 %98, label %174, label %180
174:
  %175 = getelementptr inbounds nuw i8, ptr %125, i32 56
  %176 = load i64, ptr %175, align 8
  %177 = load i64, ptr %111, align 8
  %178 = icmp eq i64 %176, %177
  %179 = select i1 %178, i32 %173, i32 0
  br label %180
180:
  %181 = phi i32 [ %179, %174 ], [ %173, %172 ]
  br i1 %92, label %182, label %189
182:
  %183 = getelementptr inbounds nuw i8, ptr %125, i32 64
  %184 = load i64, ptr %183, align 8
  %185 = load i64, ptr %112, align 8
  %186 = icmp ne i64 %184, %185
  %187 = icmp eq i32 %181, 0
  %188 = select i1 %186, i1 true, i1 %187
  br i1 %188, label %194, label %191
189:
  %190 = icmp eq i32 %181, 0
  br i1 %190, label %194, label %191
191:
  store i32 %114, ptr %2, align 4
  %192 = getelementptr inbounds nuw i8, ptr %2, i32 8
  store i32 %120, ptr %192, align 4
  %193 = zext i32 %124 to i64
  br label %199
194:
  %195 = add i32 %114, 1
  %196 = and i32 %195, %5
  %197 = icmp eq i32 %196, %102
  br i1 %197, label %198, label %113
198:
  store i32 -1, ptr %2, align 4
  br label %199
199:
  %200 = phi i64 [ %193, %191 ], [ 0, %198 ], [ 0, %118 ]
  ret i64 %200
}

define internal i64 @table_insert(i64 %0, ptr %1, ptr %2, i32 %3, i32 %4, i32 %5, i32 %6, i32 %7) #1 {
  %9 = trunc i64 %0 to i32
  %10 = inttoptr i32 %9 to ptr
  %11 = getelementptr inbounds nuw i8, ptr %10, i32 8
  %12 = load i64, ptr %11, align 8
  %13 = load i32, ptr %2, align 4
  %14 = icmp eq i32 %13, -1
  br i1 %14, label %242, label %15
15:
  %16 = icmp eq i64 %12, 0
  br i1 %16, label %30, label %17
17:
  %18 = add i64 %12, -1
  %19 = zext i32 %7 to i64
  %20 = icmp ult i64 %18, %19
  br i1 %20, label %21, label %242
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
  br i1 %34, label %35, label %242
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
  br i1 %50, label %51, label %234
51:
  %52 = icmp eq i32 %3, 0
  br i1 %52, label %56, label %53
53:
  %54 = load i64, ptr %1, align 8
  store i64 %54, ptr %49, align 8
  %55 = icmp ugt i32 %6, 16
  br i1 %55, label %58, label %234
56:
  store i64 0, ptr %49, align 8
  %57 = icmp ugt i32 %6, 16
  br i1 %57, label %67, label %234
58:
  %59 = icmp eq i32 %3, 1
  br i1 %59, label %63, label %60
60:
  %61 = getelementptr inbounds nuw i8, ptr %1, i32 8
  %62 = load i64, ptr %61, align 8
  br label %63
63:
  %64 = phi i64 [ %62, %60 ], [ 0, %58 ]
  %65 = getelementptr inbounds nuw i8, ptr %44, i32 16
  store i64 %64, ptr %65, align 8
  %66 = icmp ugt i32 %6, 24
  br i1 %66, label %70, label %234
67:
  %68 = getelementptr inbounds nuw i8, ptr %44, i32 16
  store i64 0, ptr %68, align 8
  %69 = icmp ugt i32 %6, 24
  br i1 %69, label %79, label %234
70:
  %71 = icmp ugt i32 %3, 2
  br i1 %71, label %72, label %75
72:
  %73 = getelementptr inbounds nuw i8, ptr %1, i32 16
  %74 = load i64, ptr %73, align 8
  br label %75
75:
  %76 = phi i64 [ %74, %72 ], [ 0, %70 ]
  %77 = getelementptr inbounds nuw i8, ptr %44, i32 24
  store i64 %76, ptr %77, align 8
  %78 = icmp ugt i32 %6, 32
  br i1 %78, label %82, label %234
79:
  %80 = getelementptr inbounds nuw i8, ptr %44, i32 24
  store i64 0, ptr %80, align 8
  %81 = icmp ugt i32 %6, 32
  br i1 %81, label %91, label %234
82:
  %83 = icmp ugt i32 %3, 3
  br i1 %83, label %84, label %87
84:
  %85 = getelementptr inbounds nuw i8, ptr %1, i32 24
  %86 = load i64, ptr %85, align 8
  br label %87
87:
  %88 = phi i64 [ %86, %84 ], [ 0, %82 ]
  %89 = getelementptr inbounds nuw i8, ptr %44, i32 32
  store i64 %88, ptr %89, align 8
  %90 = icmp ugt i32 %6, 40
  br i1 %90, label %94, label %234
91:
  %92 = getelementptr inbounds nuw i8, ptr %44, i32 32
  store i64 0, ptr %92, align 8
  %93 = icmp ugt i32 %6, 40
  br i1 %93, label %103, label %234
94:
  %95 = icmp ugt i32 %3, 4
  br i1 %95, label %96, label %99
96:
  %97 = getelementptr inbounds nuw i8, ptr %1, i32 32
  %98 = load i64, ptr %97, align 8
  br label %99
99:
  %100 = phi i64 [ %98, %96 ], [ 0, %94 ]
  %101 = getelementptr inbounds nuw i8, ptr %44, i32 40
  store i64 %100, ptr %101, align 8
  %102 = icmp ugt i32 %6, 48
  br i1 %102, label %106, label %234
103:
  %104 = getelementptr inbounds nuw i8, ptr %44, i32 40
  store i64 0, ptr %104, align 8
  %105 = icmp ugt i32 %6, 48
  br i1 %105, label %115, label %234
106:
  %107 = icmp ugt i32 %3, 5
  br i1 %107, label %108, label %111
108:
  %109 = getelementptr inbounds nuw i8, ptr %1, i32 40
  %110 = load i64, ptr %109, align 8
  br label %111
111:
  %112 = phi i64 [ %110, %108 ], [ 0, %106 ]
  %113 = getelementptr inbounds nuw i8, ptr %44, i32 48
  store i64 %112, ptr %113, align 8
  %114 = icmp ugt i32 %6, 56
  br i1 %114, label %118, label %234
115:
  %116 = getelementptr inbounds nuw i8, ptr %44, i32 48
  store i64 0, ptr %116, align 8
  %117 = icmp ugt i32 %6, 56
  br i1 %117, label %127, label %234
118:
  %119 = icmp ugt i32 %3, 6
  br i1 %119, label %120, label %123
120:
  %121 = getelementptr inbounds nuw i8, ptr %1, i32 48
  %122 = load i64, ptr %121, align 8
  br label %123
123:
  %124 = phi i64 [ %122, %120 ], [ 0, %118 ]
  %125 = getelementptr inbounds nuw i8, ptr %44, i32 56
  store i64 %124, ptr %125, align 8
  %126 = icmp ugt i32 %6, 64
  br i1 %126, label %130, label %234
127:
  %128 = getelementptr inbounds nuw i8, ptr %44, i32 56
  store i64 0, ptr %128, align 8
  %129 = icmp ugt i32 %6, 64
  br i1 %129, label %139, label %234
130:
  %131 = icmp ugt i32 %3, 7
  br i1 %131, label %132, label %135
132:
  %133 = getelementptr inbounds nuw i8, ptr %1, i32 56
  %134 = load i64, ptr %133, align 8
  br label %135
135:
  %136 = phi i64 [ %134, %132 ], [ 0, %130 ]
  %137 = getelementptr inbounds nuw i8, ptr %44, i32 64
  store i64 %136, ptr %137, align 8
  %138 = icmp ugt i32 %6, 72
  br i1 %138, label %142, label %234
139:
  %140 = getelementptr inbounds nuw i8, ptr %44, i32 64
  store i64 0, ptr %140, align 8
  %141 = icmp ugt i32 %6, 72
  br i1 %141, label %151, label %234
142:
  %143 = icmp ugt i32 %3, 8
  br i1 %143, label %144, label %147
144:
  %145 = getelementptr inbounds nuw i8, ptr %1, i32 64
  %146 = load i64, ptr %145, align 8
  br label %147
147:
  %148 = phi i64 [ %146, %144 ], [ 0, %142 ]
  %149 = getelementptr inbounds nuw i8, ptr %44, i32 72
  store i64 %148, ptr %149, align 8
  %150 = icmp ugt i32 %6, 80
  br i1 %150, label %154, label %234
151:
  %152 = getelementptr inbounds nuw i8, ptr %44, i32 72
  store i64 0, ptr %152, align 8
  %153 = icmp ugt i32 %6, 80
  br i1 %153, label %163, label %234
154:
  %155 = icmp ugt i32 %3, 9
  br i1 %155, label %156, label %159
156:
  %157 = getelementptr inbounds nuw i8, ptr %1, i32 72
  %158 = load i64, ptr %157, align 8
  br label %159
159:
  %160 = phi i64 [ %158, %156 ], [ 0, %154 ]
  %161 = getelementptr inbounds nuw i8, ptr %44, i32 80
  store i64 %160, ptr %161, align 8
  %162 = icmp ugt i32 %6, 88
  br i1 %162, label %166, label %234
163:
  %164 = getelementptr inbounds nuw i8, ptr %44, i32 80
  store i64 0, ptr %164, align 8
  %165 = icmp ugt i32 %6, 88
  br i1 %165, label %175, label %234
166:
  %167 = icmp ugt i32 %3, 10
  br i1 %167, label %168, label %171
168:
  %169 = getelementptr inbounds nuw i8, ptr %1, i32 80
  %170 = load i64, ptr %169, align 8
  br label %171
171:
  %172 = phi i64 [ %170, %168 ], [ 0, %166 ]
  %173 = getelementptr inbounds nuw i8, ptr %44, i32 88
  store i64 %172, ptr %173, align 8
  %174 = icmp ugt i32 %6, 96
  br i1 %174, label %178, label %234
175:
  %176 = getelementptr inbounds nuw i8, ptr %44, i32 88
  store i64 0, ptr %176, align 8
  %177 = icmp ugt i32 %6, 96
  br i1 %177, label %187, label %234
178:
  %179 = icmp ugt i32 %3, 11
  br i1 %179, label %180, label %183
180:
  %181 = getelementptr inbounds nuw i8, ptr %1, i32 88
  %182 = load i64, ptr %181, align 8
  br label %183
183:
  %184 = phi i64 [ %182, %180 ], [ 0, %178 ]
  %185 = getelementptr inbounds nuw i8, ptr %44, i32 96
  store i64 %184, ptr %185, align 8
  %186 = icmp ugt i32 %6, 104
  br i1 %186, label %190, label %234
187:
  %188 = getelementptr inbounds nuw i8, ptr %44, i32 96
  store i64 0, ptr %188, align 8
  %189 = icmp ugt i32 %6, 104
  br i1 %189, label %199, label %234
190:
  %191 = icmp ugt i32 %3, 12
  br i1 %191, label %192, label %195
192:
  %193 = getelementptr inbounds nuw i8, ptr %1, i32 96
  %194 = load i64, ptr %193, align 8
  br label %195
195:
  %196 = phi i64 [ %194, %192 ], [ 0, %190 ]
  %197 = getelementptr inbounds nuw i8, ptr %44, i32 104
  store i64 %196, ptr %197, align 8
  %198 = icmp ugt i32 %6, 112
  br i1 %198, label %202, label %234
199:
  %200 = getelementptr inbounds nuw i8, ptr %44, i32 104
  store i64 0, ptr %200, align 8
  %201 = icmp ugt i32 %6, 112
  br i1 %201, label %211, label %234
202:
  %203 = icmp ugt i32 %3, 13
  br i1 %203, label %204, label %207
204:
  %205 = getelementptr inbounds nuw i8, ptr %1, i32 104
  %206 = load i64, ptr %205, align 8
  br label %207
207:
  %208 = phi i64 [ %206, %204 ], [ 0, %202 ]
  %209 = getelementptr inbounds nuw i8, ptr %44, i32 112
  store i64 %208, ptr %209, align 8
  %210 = icmp ugt i32 %6, 120
  br i1 %210, label %214, label %234
211:
  %212 = getelementptr inbounds nuw i8, ptr %44, i32 112
  store i64 0, ptr %212, align 8
  %213 = icmp ugt i32 %6, 120
  br i1 %213, label %223, label %234
214:
  %215 = icmp ugt i32 %3, 14
  br i1 %215, label %216, label %219
216:
  %217 = getelementptr inbounds nuw i8, ptr %1, i32 112
  %218 = load i64, ptr %217, align 8
  br label %219
219:
  %220 = phi i64 [ %218, %216 ], [ 0, %214 ]
  %221 = getelementptr inbounds nuw i8, ptr %44, i32 120
  store i64 %220, ptr %221, align 8
  %222 = icmp ugt i32 %6, 128
  br i1 %222, label %226, label %234
223:
  %224 = getelementptr inbounds nuw i8, ptr %44, i32 120
  store i64 0, ptr %224, align 8
  %225 = icmp ugt i32 %6, 128
  br i1 %225, label %231, label %234
226:
  %227 = icmp ugt i32 %3, 15
  br i1 %227, label %228, label %231
228:
  %229 = getelementptr inbounds nuw i8, ptr %1, i32 120
  %230 = load i64, ptr %229, align 8
  br label %231
231:
  %232 = phi i64 [ %230, %228 ], [ 0, %226 ], [ 0, %223 ]
  %233 = getelementptr inbounds nuw i8, ptr %44, i32 128
  store i64 %232, ptr %233, align 8
  br label %234
234:
  %235 = getelementptr inbounds nuw i8, ptr %10, i32 64
  %236 = load i32, ptr %2, align 4
  %237 = getelementptr inbounds nuw i32, ptr %235, i32 %236
  store i32 %45, ptr %237, align 4
  %238 = load i64, ptr %10, align 8
  %239 = add i64 %238, 1
  store i64 %239, ptr %10, align 8
  %240 = ptrtoint ptr %44 to i32
  %241 = zext i32 %240 to i64
  br label %242
242:
  %243 = phi i64 [ 0, %17 ], [ 0, %8 ], [ %241, %234 ], [ 0, %30 ]
  ret i64 %243
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
