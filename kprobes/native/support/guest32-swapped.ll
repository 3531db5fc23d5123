%struct.question = type { i64, i64, i64, i64 }
%struct.block = type { i64, i64, i64 }
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
  %114 = phi i32 [ %102, %91 ], [ %205, %203 ]
  %115 = getelementptr inbounds nuw i32, ptr %104, i32 %114
  %116 = load i32, ptr %115, align 4
  %117 = icmp eq i32 %116, 0
  br i1 %117, label %118, label %119
118:
  store i32 %114, ptr %2, align 4
  br label %208
119:
  %120 = call i32 @llvm.bswap.i32(i32 %116)
  %121 = add i32 %120, -1
  %122 = icmp ult i32 %121, %8
  br i1 %122, label %123, label %203
123:
  %124 = mul i32 %121, %7
  %125 = add i32 %105, %124
  %126 = inttoptr i32 %125 to ptr
  br i1 %10, label %134, label %127
127:
  %128 = getelementptr inbounds nuw i8, ptr %126, i32 8
  %129 = load i64, ptr %128, align 8
  %130 = call i64 @llvm.bswap.i64(i64 %129)
  %131 = load i64, ptr %1, align 8
  %132 = icmp eq i64 %130, %131
  %133 = zext i1 %132 to i32
  br label %134
134:
  %135 = phi i32 [ %133, %127 ], [ 1, %123 ]
  br i1 %95, label %136, label %143
136:
  %137 = getelementptr inbounds nuw i8, ptr %126, i32 16
  %138 = load i64, ptr %137, align 8
  %139 = call i64 @llvm.bswap.i64(i64 %138)
  %140 = load i64, ptr %106, align 8
  %141 = icmp eq i64 %139, %140
  %142 = select i1 %141, i32 %135, i32 0
  br label %143
143:
  %144 = phi i32 [ %142, %136 ], [ %135, %134 ]
  br i1 %96, label %145, label %152
145:
  %146 = getelementptr inbounds nuw i8, ptr %126, i32 24
  %147 = load i64, ptr %146, align 8
  %148 = call i64 @llvm.bswap.i64(i64 %147)
  %149 = load i64, ptr %107, align 8
  %150 = icmp eq i64 %148, %149
  %151 = select i1 %150, i32 %144, i32 0
  br label %152
152:
  %153 = phi i32 [ %151, %145 ], [ %144, %143 ]
  br i1 %94, label %154, label %161
154:
  %155 = getelementptr inbounds nuw i8, ptr %126, i32 32
  %156 = load i64, ptr %155, align 8
  %157 = call i64 @llvm.bswap.i64(i64 %156)
  %158 = load i64, ptr %108, align 8
  %159 = icmp eq i64 %157, %158
  %160 = select i1 %159, i32 %153, i32 0
  br label %161
161:
  %162 = phi i32 [ %160, %154 ], [ %153, %152 ]
  br i1 %97, label %163, label %170
163:
  %164 = getelementptr inbounds nuw i8, ptr %126, i32 40
  %165 = load i64, ptr %164, align 8
  %166 = call i64 @llvm.bswap.i64(i64 %165)
  %167 = load i64, ptr %109, align 8
  %168 = icmp eq i64 %166, %167
  %169 = select i1 %168, i32 %162, i32 0
  br label %170
170:
  %171 = phi i32 [ %169, %163 ], [ %162, %161 ]
  br i1 %93, label %172, label %179
172:
  %173 = getelementptr inbounds nuw i8, ptr %126, i32 48
  %174 = load i64, ptr %173, align 8
  %175 = call i64 @llvm.bswap.i64(i64 %174)
  %176 = load i64, ptr %110, align 8
  %177 = icmp eq i64 %175, %176
  %178 = select i1 %177, i32 %171, i32 0
  br label %179
179:
  %180 = phi i32 [ %178, %172 ], [ %171, %170 ]
  br i1 %98, label %181, label %188
181:
  %182 = getelementptr inbounds nuw i8, ptr %126, i32 56
  %183 = load i64, ptr %182, align 8
  %184 = call i64 @llvm.bswap.i64(i64 %183)
  %185 = load i64, ptr %111, align 8
  %186 = icmp eq i64 %184, %185
  %187 = select i1 %186, i32 %180, i32 0
  br label %188
188:
  %189 = phi i32 [ %187, %181 ], [ %180, %179 ]
  br i1 %92, label %190, label %198
190:
  %191 = getelementptr inbounds nuw i8, ptr %126, i32 64
  %192 = load i64, ptr %191, align 8
  %193 = call i64 @llvm.bswap.i64(i64 %192)
  %194 = load i64, ptr %112, align 8
  %195 = icmp ne i64 %193, %194
  %196 = icmp eq i32 %189, 0
  %197 = select i1 %195, i1 true, i1 %196
  br i1 %197, label %203, label %200
198:
  %199 = icmp eq i32 %189, 0
  br i1 %199, label %203, label %200
200:
  store i32 %114, ptr %2, align 4
  %201 = getelementptr inbounds nuw i8, ptr %2, i32 8
  store i32 %121, ptr %201, align 4
  %202 = zext i32 %125 to i64
  br label %208
203:
  %204 = add i32 %114, 1
  %205 = and i32 %204, %5
  %206 = icmp eq i32 %205, %102
  br i1 %206, label %207, label %113
207:
  store i32 -1, ptr %2, align 4
  br label %208
208:
  %209 = phi i64 [ %202, %200 ], [ 0, %207 ], [ 0, %118 ]
  ret i64 %209
}

define internal i64 @table_insert(i64 %0, ptr %1, ptr %2, i32 %3, i32 %4, i32 %5, i32 %6, i32 %7) #1 {
  %9 = trunc i64 %0 to i32
  %10 = inttoptr i32 %9 to ptr
  %11 = getelementptr inbounds nuw i8, ptr %10, i32 8
  %12 = load i64, ptr %11, align 8
  %13 = call i64 @llvm.bswap.i64(i64 %12)
  %14 = load i32, ptr %2, align 4
  %15 = icmp eq i32 %14, -1
  br i1 %15, label %267, label %16
16:
  %17 = icmp eq i64 %12, 0
  br i1 %17, label %33, label %18
18:
  %19 = add i64 %13, -1
  %20 = zext i32 %7 to i64
  %21 = icmp ult i64 %19, %20
  br i1 %21, label %22, label %267
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
  br i1 %38, label %39, label %267
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
  br i1 %56, label %57, label %256
57:
  %58 = icmp eq i32 %3, 0
  br i1 %58, label %63, label %59
59:
  %60 = load i64, ptr %1, align 8
  %61 = call i64 @llvm.bswap.i64(i64 %60)
  store i64 %61, ptr %55, align 8
  %62 = icmp ugt i32 %6, 16
  br i1 %62, label %65, label %256
63:
  store i64 0, ptr %55, align 8
  %64 = icmp ugt i32 %6, 16
  br i1 %64, label %75, label %256
65:
  %66 = icmp eq i32 %3, 1
  br i1 %66, label %71, label %67
67:
  %68 = getelementptr inbounds nuw i8, ptr %1, i32 8
  %69 = load i64, ptr %68, align 8
  %70 = call i64 @llvm.bswap.i64(i64 %69)
  br label %71
71:
  %72 = phi i64 [ %70, %67 ], [ 0, %65 ]
  %73 = getelementptr inbounds nuw i8, ptr %49, i32 16
  store i64 %72, ptr %73, align 8
  %74 = icmp ugt i32 %6, 24
  br i1 %74, label %78, label %256
75:
  %76 = getelementptr inbounds nuw i8, ptr %49, i32 16
  store i64 0, ptr %76, align 8
  %77 = icmp ugt i32 %6, 24
  br i1 %77, label %88, label %256
78:
  %79 = icmp ugt i32 %3, 2
  br i1 %79, label %80, label %84
80:
  %81 = getelementptr inbounds nuw i8, ptr %1, i32 16
  %82 = load i64, ptr %81, align 8
  %83 = call i64 @llvm.bswap.i64(i64 %82)
  br label %84
84:
  %85 = phi i64 [ %83, %80 ], [ 0, %78 ]
  %86 = getelementptr inbounds nuw i8, ptr %49, i32 24
  store i64 %85, ptr %86, align 8
  %87 = icmp ugt i32 %6, 32
  br i1 %87, label %91, label %256
88:
  %89 = getelementptr inbounds nuw i8, ptr %49, i32 24
  store i64 0, ptr %89, align 8
  %90 = icmp ugt i32 %6, 32
  br i1 %90, label %101, label %256
91:
  %92 = icmp ugt i32 %3, 3
  br i1 %92, label %93, label %97
93:
  %94 = getelementptr inbounds nuw i8, ptr %1, i32 24
  %95 = load i64, ptr %94, align 8
  %96 = call i64 @llvm.bswap.i64(i64 %95)
  br label %97
97:
  %98 = phi i64 [ %96, %93 ], [ 0, %91 ]
  %99 = getelementptr inbounds nuw i8, ptr %49, i32 32
  store i64 %98, ptr %99, align 8
  %100 = icmp ugt i32 %6, 40
  br i1 %100, label %104, label %256
101:
  %102 = getelementptr inbounds nuw i8, ptr %49, i32 32
  store i64 0, ptr %102, align 8
  %103 = icmp ugt i32 %6, 40
  br i1 %103, label %114, label %256
104:
  %105 = icmp ugt i32 %3, 4
  br i1 %105, label %106, label %110
106:
  %107 = getelementptr inbounds nuw i8, ptr %1, i32 32
  %108 = load i64, ptr %107, align 8
  %109 = call i64 @llvm.bswap.i64(i64 %108)
  br label %110
110:
  %111 = phi i64 [ %109, %106 ], [ 0, %104 ]
  %112 = getelementptr inbounds nuw i8, ptr %49, i32 40
  store i64 %111, ptr %112, align 8
  %113 = icmp ugt i32 %6, 48
  br i1 %113, label %117, label %256
114:
  %115 = getelementptr inbounds nuw i8, ptr %49, i32 40
  store i64 0, ptr %115, align 8
  %116 = icmp ugt i32 %6, 48
  br i1 %116, label %127, label %256
117:
  %118 = icmp ugt i32 %3, 5
  br i1 %118, label %119, label %123
119:
  %120 = getelementptr inbounds nuw i8, ptr %1, i32 40
  %121 = load i64, ptr %120, align 8
  %122 = call i64 @llvm.bswap.i64(i64 %121)
  br label %123
123:
  %124 = phi i64 [ %122, %119 ], [ 0, %117 ]
  %125 = getelementptr inbounds nuw i8, ptr %49, i32 48
  store i64 %124, ptr %125, align 8
  %126 = icmp ugt i32 %6, 56
  br i1 %126, label %130, label %256
127:
  %128 = getelementptr inbounds nuw i8, ptr %49, i32 48
  store i64 0, ptr %128, align 8
  %129 = icmp ugt i32 %6, 56
  br i1 %129, label %140, label %256
130:
  %131 = icmp ugt i32 %3, 6
  br i1 %131, label %132, label %136
132:
  %133 = getelementptr inbounds nuw i8, ptr %1, i32 48
  %134 = load i64, ptr %133, align 8
  %135 = call i64 @llvm.bswap.i64(i64 %134)
  br label %136
136:
  %137 = phi i64 [ %135, %132 ], [ 0, %130 ]
  %138 = getelementptr inbounds nuw i8, ptr %49, i32 56
  store i64 %137, ptr %138, align 8
  %139 = icmp ugt i32 %6, 64
  br i1 %139, label %143, label %256
140:
  %141 = getelementptr inbounds nuw i8, ptr %49, i32 56
  store i64 0, ptr %141, align 8
  %142 = icmp ugt i32 %6, 64
  br i1 %142, label %153, label %256
143:
  %144 = icmp ugt i32 %3, 7
  br i1 %144, label %145, label %149
145:
  %146 = getelementptr inbounds nuw i8, ptr %1, i32 56
  %147 = load i64, ptr %146, align 8
  %148 = call i64 @llvm.bswap.i64(i64 %147)
  br label %149
149:
  %150 = phi i64 [ %148, %145 ], [ 0, %143 ]
  %151 = getelementptr inbounds nuw i8, ptr %49, i32 64
  store i64 %150, ptr %151, align 8
  %152 = icmp ugt i32 %6, 72
  br i1 %152, label %156, label %256
153:
  %154 = getelementptr inbounds nuw i8, ptr %49, i32 64
  store i64 0, ptr %154, align 8
  %155 = icmp ugt i32 %6, 72
  br i1 %155, label %166, label %256
156:
  %157 = icmp ugt i32 %3, 8
  br i1 %157, label %158, label %162
158:
  %159 = getelementptr inbounds nuw i8, ptr %1, i32 64
  %160 = load i64, ptr %159, align 8
  %161 = call i64 @llvm.bswap.i64(i64 %160)
  br label %162
162:
  %163 = phi i64 [ %161, %158 ], [ 0, %156 ]
  %164 = getelementptr inbounds nuw i8, ptr %49, i32 72
  store i64 %163, ptr %164, align 8
  %165 = icmp ugt i32 %6, 80
  br i1 %165, label %169, label %256
166:
  %167 = getelementptr inbounds nuw i8, ptr %49, i32 72
  store i64 0, ptr %167, align 8
  %168 = icmp ugt i32 %6, 80
  br i1 %168, label %179, label %256
169:
  %170 = icmp ugt i32 %3, 9
  br i1 %170, label %171, label %175
171:
  %172 = getelementptr inbounds nuw i8, ptr %1, i32 72
  %173 = load i64, ptr %172, align 8
  %174 = call i64 @llvm.bswap.i64(i64 %173)
  br label %175
175:
  %176 = phi i64 [ %174, %171 ], [ 0, %169 ]
  %177 = getelementptr inbounds nuw i8, ptr %49, i32 80
  store i64 %176, ptr %177, align 8
  %178 = icmp ugt i32 %6, 88
  br i1 %178, label %182, label %256
179:
  %180 = getelementptr inbounds nuw i8, ptr %49, i32 80
  store i64 0, ptr %180, align 8
  %181 = icmp ugt i32 %6, 88
  br i1 %181, label %192, label %256
182:
  %183 = icmp ugt i32 %3, 10
  br i1 %183, label %184, label %188
184:
  %185 = getelementptr inbounds nuw i8, ptr %1, i32 80
  %186 = load i64, ptr %185, align 8
  %187 = call i64 @llvm.bswap.i64(i64 %186)
  br label %188
188:
  %189 = phi i64 [ %187, %184 ], [ 0, %182 ]
  %190 = getelementptr inbounds nuw i8, ptr %49, i32 88
  store i64 %189, ptr %190, align 8
  %191 = icmp ugt i32 %6, 96
  br i1 %191, label %195, label %256
192:
  %193 = getelementptr inbounds nuw i8, ptr %49, i32 88
  store i64 0, ptr %193, align 8
  %194 = icmp ugt i32 %6, 96
  br i1 %194, label %205, label %256
195:
  %196 = icmp ugt i32 %3, 11
  br i1 %196, label %197, label %201
197:
  %198 = getelementptr inbounds nuw i8, ptr %1, i32 88
  %199 = load i64, ptr %198, align 8
  %200 = call i64 @llvm.bswap.i64(i64 %199)
  br label %201
201:
  %202 = phi i64 [ %200, %197 ], [ 0, %195 ]
  %203 = getelementptr inbounds nuw i8, ptr %49, i32 96
  store i64 %202, ptr %203, align 8
  %204 = icmp ugt i32 %6, 104
  br i1 %204, label %208, label %256
205:
  %206 = getelementptr inbounds nuw i8, ptr %49, i32 96
  store i64 0, ptr %206, align 8
  %207 = icmp ugt i32 %6, 104
  br i1 %207, label %218, label %256
208:
  %209 = icmp ugt i32 %3, 12
  br i1 %209, label %210, label %214
210:
  %211 = getelementptr inbounds nuw i8, ptr %1, i32 96
  %212 = load i64, ptr %211, align 8
  %213 = call i64 @llvm.bswap.i64(i64 %212)
  br label %214
214:
  %215 = phi i64 [ %213, %210 ], [ 0, %208 ]
  %216 = getelementptr inbounds nuw i8, ptr %49, i32 104
  store i64 %215, ptr %216, align 8
  %217 = icmp ugt i32 %6, 112
  br i1 %217, label %221, label %256
218:
  %219 = getelementptr inbounds nuw i8, ptr %49, i32 104
  store i64 0, ptr %219, align 8
  %220 = icmp ugt i32 %6, 112
  br i1 %220, label %231, label %256
221:
  %222 = icmp ugt i32 %3, 13
  br i1 %222, label %223, label %227
223:
  %224 = getelementptr inbounds nuw i8, ptr %1, i32 104
  %225 = load i64, ptr %224, align 8
  %226 = call i64 @llvm.bswap.i64(i64 %225)
  br label %227
227:
  %228 = phi i64 [ %226, %223 ], [ 0, %221 ]
  %229 = getelementptr inbounds nuw i8, ptr %49, i32 112
  store i64 %228, ptr %229, align 8
  %230 = icmp ugt i32 %6, 120
  br i1 %230, label %234, label %256
231:
  %232 = getelementptr inbounds nuw i8, ptr %49, i32 112
  store i64 0, ptr %232, align 8
  %233 = icmp ugt i32 %6, 120
  br i1 %233, label %244, label %256
234:
  %235 = icmp ugt i32 %3, 14
  br i1 %235, label %236, label %240
236:
  %237 = getelementptr inbounds nuw i8, ptr %1, i32 112
  %238 = load i64, ptr %237, align 8
  %239 = call i64 @llvm.bswap.i64(i64 %238)
  br label %240
240:
  %241 = phi i64 [ %239, %236 ], [ 0, %234 ]
  %242 = getelementptr inbounds nuw i8, ptr %49, i32 120
  store i64 %241, ptr %242, align 8
  %243 = icmp ugt i32 %6, 128
  br i1 %243, label %247, label %256
244:
  %245 = getelementptr inbounds nuw i8, ptr %49, i32 120
  store i64 0, ptr %245, align 8
  %246 = icmp ugt i32 %6, 128
  br i1 %246, label %253, label %256
247:
  %248 = icmp ugt i32 %3, 15
  br i1 %248, label %249, label %253
249:
  %250 = getelementptr inbounds nuw i8, ptr %1, i32 120
  %251 = load i64, ptr %250, align 8
  %252 = call i64 @llvm.bswap.i64(i64 %251)
  br label %253
253:
  %254 = phi i64 [ %252, %249 ], [ 0, %247 ], [ 0, %244 ]
  %255 = getelementptr inbounds nuw i8, ptr %49, i32 128
  store i64 %254, ptr %255, align 8
  br label %256
256:
  %257 = call i32 @llvm.bswap.i32(i32 %50)
  %258 = getelementptr inbounds nuw i8, ptr %10, i32 64
  %259 = load i32, ptr %2, align 4
  %260 = getelementptr inbounds nuw i32, ptr %258, i32 %259
  store i32 %257, ptr %260, align 4
  %261 = load i64, ptr %10, align 8
  %262 = call i64 @llvm.bswap.i64(i64 %261)
  %263 = add i64 %262, 1
  %264 = call i64 @llvm.bswap.i64(i64 %263)
  store i64 %264, ptr %10, align 8
  %265 = ptrtoint ptr %49 to i32
  %266 = zext i32 %265 to i64
  br label %267
267:
  %268 = phi i64 [ 0, %18 ], [ 0, %8 ], [ %266, %256 ], [ 0, %33 ]
  ret i64 %268
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
