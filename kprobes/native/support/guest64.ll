%struct.question = type { i64, i64, i64, i64 }
%struct.block = type { i64, i64, i64 }
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
  %87 = add i64 %6, %0
  %88 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %89 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %90 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %91 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %92 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %93 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %94 = getelementptr inbounds nuw i8, ptr %1, i64 56
  br label %95
95:
  %96 = phi i64 [ %84, %73 ], [ %178, %176 ]
  %97 = getelementptr inbounds nuw i32, ptr %86, i64 %96
  %98 = load i32, ptr %97, align 4
  %99 = icmp eq i32 %98, 0
  br i1 %99, label %100, label %101
100:
  store i64 %96, ptr %2, align 8
  br label %181
101:
  %102 = zext i32 %98 to i64
  %103 = add nsw i64 %102, -1
  %104 = icmp ult i64 %103, %8
  br i1 %104, label %105, label %176
105:
  %106 = mul i64 %103, %7
  %107 = add i64 %87, %106
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
  %116 = phi i32 [ %114, %109 ], [ 1, %105 ]
  br i1 %77, label %117, label %123
117:
  %118 = getelementptr inbounds nuw i8, ptr %108, i64 16
  %119 = load i64, ptr %118, align 8
  %120 = load i64, ptr %88, align 8
  %121 = icmp eq i64 %119, %120
  %122 = select i1 %121, i32 %116, i32 0
  br label %123
123:
  %124 = phi i32 [ %122, %117 ], [ %116, %115 ]
  br i1 %78, label %125, label %131
125:
  %126 = getelementptr inbounds nuw i8, ptr %108, i64 24
  %127 = load i64, ptr %126, align 8
  %128 = load i64, ptr %89, align 8
  %129 = icmp eq i64 %127, %128
  %130 = select i1 %129, i32 %124, i32 0
  br label %131
131:
  %132 = phi i32 [ %130, %125 ], [ %124, %123 ]
  br i1 %76, label %133, label %139
133:
  %134 = getelementptr inbounds nuw i8, ptr %108, i64 32
  %135 = load i64, ptr %134, align 8
  %136 = load i64, ptr %90, align 8
  %137 = icmp eq i64 %135, %136
  %138 = select i1 %137, i32 %132, i32 0
  br label %139
139:
  %140 = phi i32 [ %138, %133 ], [ %132, %131 ]
  br i1 %79, label %141, label %147
141:
  %142 = getelementptr inbounds nuw i8, ptr %108, i64 40
  %143 = load i64, ptr %142, align 8
  %144 = load i64, ptr %91, align 8
  %145 = icmp eq i64 %143, %144
  %146 = select i1 %145, i32 %140, i32 0
  br label %147
147:
  %148 = phi i32 [ %146, %141 ], [ %140, %139 ]
  br i1 %75, label %149, label %155
149:
  %150 = getelementptr inbounds nuw i8, ptr %108, i64 48
  %151 = load i64, ptr %150, align 8
  %152 = load i64, ptr %92, align 8
  %153 = icmp eq i64 %151, %152
  %154 = select i1 %153, i32 %148, i32 0
  br label %155
155:
  %156 = phi i32 [ %154, %149 ], [ %148, %147 ]
  br i1 %80, label %157, label %163
157:
  %158 = getelementptr inbounds nuw i8, ptr %108, i64 56
  %159 = load i64, ptr %158, align 8
  %160 = load i64, ptr %93, align 8
  %161 = icmp eq i64 %159, %160
  %162 = select i1 %161, i32 %156, i32 0
  br label %163
163:
  %164 = phi i32 [ %162, %157 ], [ %156, %155 ]
  br i1 %74, label %165, label %172
165:
  %166 = getelementptr inbounds nuw i8, ptr %108, i64 64
  %167 = load i64, ptr %166, align 8
  %168 = load i64, ptr %94, align 8
  %169 = icmp ne i64 %167, %168
  %170 = icmp eq i32 %164, 0
  %171 = select i1 %169, i1 true, i1 %170
  br i1 %171, label %176, label %174
172:
  %173 = icmp eq i32 %164, 0
  br i1 %173, label %176, label %174
174:
  store i64 %96, ptr %2, align 8
  %175 = getelementptr inbounds nuw i8, ptr %2, i64 16
  store i64 %103, ptr %175, align 8
  br label %181
176:
  %177 = add i64 %96, 1
  %178 = and i64 %177, %5
  %179 = icmp eq i64 %178, %84
  br i1 %179, label %180, label %95
180:
  store i64 -1, ptr %2, align 8
  br label %181
181:
  %182 = phi i64 [ %107, %174 ], [ 0, %180 ], [ 0, %100 ]
  ret i64 %182
}

define internal i64 @table_insert(i64 %0, ptr %1, ptr %2, i32 %3, i64 %4, i64 %5, i64 %6, i64 %7) #1 {
  %9 = inttoptr i64 %0 to ptr
  %10 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %11 = load i64, ptr %10, align 8
  %12 = load i64, ptr %2, align 8
  %13 = icmp eq i64 %12, -1
  br i1 %13, label %237, label %14
14:
  %15 = icmp eq i64 %11, 0
  br i1 %15, label %26, label %16
16:
  %17 = add i64 %11, -1
  %18 = icmp ult i64 %17, %7
  br i1 %18, label %19, label %237
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
  br i1 %29, label %30, label %237
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
  br i1 %44, label %45, label %228
45:
  %46 = icmp eq i32 %3, 0
  br i1 %46, label %50, label %47
47:
  %48 = load i64, ptr %1, align 8
  store i64 %48, ptr %43, align 8
  %49 = icmp ugt i64 %6, 16
  br i1 %49, label %52, label %228
50:
  store i64 0, ptr %43, align 8
  %51 = icmp ugt i64 %6, 16
  br i1 %51, label %61, label %228
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
  br i1 %60, label %64, label %228
61:
  %62 = getelementptr inbounds nuw i8, ptr %37, i64 16
  store i64 0, ptr %62, align 8
  %63 = icmp ugt i64 %6, 24
  br i1 %63, label %73, label %228
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
  br i1 %72, label %76, label %228
73:
  %74 = getelementptr inbounds nuw i8, ptr %37, i64 24
  store i64 0, ptr %74, align 8
  %75 = icmp ugt i64 %6, 32
  br i1 %75, label %85, label %228
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
  br i1 %84, label %88, label %228
85:
  %86 = getelementptr inbounds nuw i8, ptr %37, i64 32
  store i64 0, ptr %86, align 8
  %87 = icmp ugt i64 %6, 40
  br i1 %87, label %97, label %228
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
  br i1 %96, label %100, label %228
97:
  %98 = getelementptr inbounds nuw i8, ptr %37, i64 40
  store i64 0, ptr %98, align 8
  %99 = icmp ugt i64 %6, 48
  br i1 %99, label %109, label %228
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
  br i1 %108, label %112, label %228
109:
  %110 = getelementptr inbounds nuw i8, ptr %37, i64 48
  store i64 0, ptr %110, align 8
  %111 = icmp ugt i64 %6, 56
  br i1 %111, label %121, label %228
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
  br i1 %120, label %124, label %228
121:
  %122 = getelementptr inbounds nuw i8, ptr %37, i64 56
  store i64 0, ptr %122, align 8
  %123 = icmp ugt i64 %6, 64
  br i1 %123, label %133, label %228
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
  br i1 %132, label %136, label %228
133:
  %134 = getelementptr inbounds nuw i8, ptr %37, i64 64
  store i64 0, ptr %134, align 8
  %135 = icmp ugt i64 %6, 72
  br i1 %135, label %145, label %228
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
  br i1 %144, label %148, label %228
145:
  %146 = getelementptr inbounds nuw i8, ptr %37, i64 72
  store i64 0, ptr %146, align 8
  %147 = icmp ugt i64 %6, 80
  br i1 %147, label %157, label %228
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
  br i1 %156, label %160, label %228
157:
  %158 = getelementptr inbounds nuw i8, ptr %37, i64 80
  store i64 0, ptr %158, align 8
  %159 = icmp ugt i64 %6, 88
  br i1 %159, label %169, label %228
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
  br i1 %168, label %172, label %228
169:
  %170 = getelementptr inbounds nuw i8, ptr %37, i64 88
  store i64 0, ptr %170, align 8
  %171 = icmp ugt i64 %6, 96
  br i1 %171, label %181, label %228
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
  br i1 %180, label %184, label %228
181:
  %182 = getelementptr inbounds nuw i8, ptr %37, i64 96
  store i64 0, ptr %182, align 8
  %183 = icmp ugt i64 %6, 104
  br i1 %183, label %193, label %228
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
  br i1 %192, label %196, label %228
193:
  %194 = getelementptr inbounds nuw i8, ptr %37, i64 104
  store i64 0, ptr %194, align 8
  %195 = icmp ugt i64 %6, 112
  br i1 %195, label %205, label %228
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
  br i1 %204, label %208, label %228
205:
  %206 = getelementptr inbounds nuw i8, ptr %37, i64 112
  store i64 0, ptr %206, align 8
  %207 = icmp ugt i64 %6, 120
  br i1 %207, label %217, label %228
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
  br i1 %216, label %220, label %228
217:
  %218 = getelementptr inbounds nuw i8, ptr %37, i64 120
  store i64 0, ptr %218, align 8
  %219 = icmp ugt i64 %6, 128
  br i1 %219, label %225, label %228
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
  br label %228
228:
  %229 = trunc i64 %38 to i32
  %230 = add i32 %229, 1
  %231 = getelementptr inbounds nuw i8, ptr %9, i64 64
  %232 = load i64, ptr %2, align 8
  %233 = getelementptr inbounds nuw i32, ptr %231, i64 %232
  store i32 %230, ptr %233, align 4
  %234 = load i64, ptr %9, align 8
  %235 = add i64 %234, 1
  store i64 %235, ptr %9, align 8
  %236 = ptrtoint ptr %37 to i64
  br label %237
237:
  %238 = phi i64 [ 0, %16 ], [ 0, %8 ], [ %236, %228 ], [ 0, %26 ]
  ret i64 %238
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
