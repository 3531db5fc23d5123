// Functions for the model of an Itanium: every template, every kind of branch, rotation, recursion.
// ia64-linux-gnu-as ia64.s; the text section is ia64.txt (build_ia64.py).
	.explicit
	.text

	// a plain loop: n + (n - 1) + ... + 1
sum:	.mmi
	alloc r35=ar.pfs,1,4,1,0
	mov r8=r0
	mov r36=b0 ;;
1:	.mib
	add r8=r8,r32
	adds r32=-1,r32
	nop.b 0 ;;
	.mib
	nop.m 0
	cmp.ne p6,p7=0,r32
	(p6) br.cond.sptk.few 1b ;;
	.mii
	nop.m 0
	mov.i ar.pfs=r35
	mov b0=r36 ;;
	.bbb
	nop.b 0
	nop.b 0
	br.ret.sptk.many b0 ;;

	// recursion, predicates that are kept in a register, the multiplier
fact:	.mmi
	alloc r34=ar.pfs,1,3,1,0
	nop.m 0
	mov r33=b0 ;;
	.mii
	nop.m 0
	mov r35=pr
	cmp.eq p1,p2=0,r32 ;;
	.mib
	(p2) adds r36=-1,r32
	(p1) mov r8=1
	(p2) br.call.sptk.many b0=fact ;;
	.mfi
	(p2) setf.sig f6=r8
	nop.f 0
	mov b0=r33 ;;
	.mmi
	(p2) setf.sig f7=r32
	nop.m 0
	mov.i ar.pfs=r34 ;;
	.mfi
	nop.m 0
	(p2) xma.l f6=f6,f7,f0
	nop.i 0 ;;
	.mib
	(p2) getf.sig r8=f6
	mov pr=r35,-1
	br.ret.sptk.many b0 ;;

	// a software pipeline: copies r34 words from r33 to r32, three stages; r8 = their sum
copy:	.mmi
	alloc r2=ar.pfs,3,13,0,16
	mov r8=r0
	mov r3=ar.lc ;;
	.mii
	mov r14=r32
	mov r9=pr
	mov r15=r33 ;;
	.mii
	adds r16=-1,r34
	mov.i ar.ec=3
	mov pr.rot=0x10000 ;;
	.mii
	nop.m 0
	mov.i ar.lc=r16
	nop.i 0 ;;
2:	.mmi
	(p16) ld8 r36=[r15],8
	(p18) st8 [r14]=r38,8
	(p18) add r8=r8,r38 ;;
	.mib
	nop.m 0
	nop.i 0
	br.ctop.sptk.few 2b ;;
	.mii
	nop.m 0
	mov.i ar.lc=r3
	mov pr=r9,-1 ;;
	.mib
	nop.m 0
	mov.i ar.pfs=r2
	br.ret.sptk.many b0 ;;

	// length of a string at r32: a while loop, by its condition
length: .mmi
	alloc r2=ar.pfs,1,7,0,8
	mov r8=-1
	mov r9=pr ;;
	.mii
	mov r14=r32
	mov.i ar.ec=1
	mov pr.rot=0x10000 ;;
3:	.mmi
	ld1 r15=[r14],1
	adds r8=1,r8
	nop.i 0 ;;
	.mib
	nop.m 0
	cmp.ne.unc p6,p0=0,r15
	(p6) br.wtop.sptk.few 3b ;;
	.mib
	nop.m 0
	mov pr=r9,-1
	br.ret.sptk.many b0 ;;

	// a counted loop: sets r33 bytes at r32 to r34
fill:	.mii
	nop.m 0
	mov.i r2=ar.lc
	adds r33=-1,r33 ;;
	.mii
	nop.m 0
	mov.i ar.lc=r33
	mov r8=r32 ;;
4:	.mib
	st1 [r32]=r34,1
	nop.i 0
	br.cloop.sptk.few 4b ;;
	.mib
	nop.m 0
	mov.i ar.lc=r2
	br.ret.sptk.many b0 ;;

	// calls the function whose descriptor is at r32, with r33, through b6; then brl.call, ip, movl
through: .mmi
	alloc r35=ar.pfs,2,4,1,0
	mov r37=r1
	mov r34=b0 ;;
	.mmi
	ld8 r14=[r32],8 ;;
	ld8 r1=[r32]
	mov b6=r14
	.mib
	mov r38=r33
	nop.i 0
	br.call.sptk.many b0=b6 ;;
	.mlx
	mov r1=r37
	movl r15=0x123456789abcdef0 ;;
	.mii
	mov r36=r8
	mov r16=ip
	xor r15=r15,r15 ;;
	.mlx
	mov r38=5
	brl.call.sptk.many b0=sum ;;
	.mlx
	cmp.eq p6,p7=r0,r0
	(p6) brl.cond.sptk.many 5f ;;
	.mmi
	mov r8=-1
	nop.m 0
	nop.i 0 ;;
5:	.mii
	add r8=r8,r36
	mov b0=r34
	mov.i ar.pfs=r35 ;;
	.mfb
	add r8=r8,r15
	nop.f 0
	br.ret.sptk.many b0 ;;

	// nine arguments: the ninth is in memory at sp+16; every compare; branches in slots 0, 1 and 2
choose:	.mmi
	adds r14=16,r12
	cmp.lt.unc p6,p7=r32,r33
	nop.i 0 ;;
	.mmi
	ld8 r8=[r14]
	(p6) cmp.eq.unc p8,p9=r34,r35
	tbit.nz p10,p11=r36,3 ;;
	.bbb
	(p8) br.cond.dpnt.few 6f
	(p9) br.cond.dpnt.few 7f
	nop.b 0 ;;
	.mmb
	cmp.gt.and p10,p11=r0,r37
	adds r8=100,r8
	(p7) br.ret.dpnt.few b0 ;;
6:	.mbb
	shladd r8=r8,2,r39
	nop.b 0
	(p10) br.ret.dpnt.few b0 ;;
7:	.mmf
	(p11) add r8=r8,r38,1
	nop.m 0
	nop.f 0 ;;
	.mfb
	(p6) sub r8=r8,r32
	nop.f 0
	br.ret.sptk.many b0 ;;

	// depth: r32 calls deep, a frame of 80 registers each; what it keeps is in the backing store
deep:	.mmi
	alloc r33=ar.pfs,1,79,1,0
	cmp.eq p6,p7=0,r32
	mov r34=b0 ;;
	.mib
	mov r111=r32
	adds r112=-1,r32
	(p6) br.cond.dpnt.few 8f ;;
	.mib
	nop.m 0
	nop.i 0
	br.call.sptk.many b0=deep ;;
	.mii
	add r8=r8,r111
	mov.i ar.pfs=r33
	mov b0=r34 ;;
	.mib
	nop.m 0
	nop.i 0
	br.ret.sptk.many b0 ;;
8:	.mii
	mov r8=r0
	mov.i ar.pfs=r33
	mov b0=r34 ;;
	.mib
	nop.m 0
	nop.i 0
	br.ret.sptk.many b0 ;;

	// semaphores and fields
swap:	.mii
	mov.m ar.ccv=r33
	extr.u r14=r33,8,16
	dep r15=r33,r32,4,8 ;;
	.mmi
	cmpxchg8.acq r8=[r32],r34,ar.ccv
	nop.m 0
	popcnt r16=r33 ;;
	.mmi
	fetchadd8.rel r17=[r32],-8
	xchg4 r18=[r32],r34
	shr.u r19=r33,r16 ;;
	.mii
	add r8=r8,r14
	sxt4 r18=r18
	shl r17=r17,r16 ;;
	.mmi
	add r8=r8,r17
	xor r18=r18,r19
	nop.i 0 ;;
	.mib
	sub r8=r8,r18
	nop.i 0
	br.ret.sptk.many b0 ;;
end:
