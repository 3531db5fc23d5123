/* PA-RISC's millicode: division, for which there are no instructions, and calls through pointers. The arguments of a division are
 * in %r26 and %r25, its result goes to %r29; only these, %r1 and %r31 may change, and %r31 has the return address. */

asm(".macro millicode name\n"
    "\t.section .text.\\name, \"ax\"\n\t.align 4\n\t.globl \\name\n\t.type \\name, @function\n\\name:\n"
    "\t.endm\n"
    /* unsigned: %r26 is shifted out of the number and into the quotient, %r1 is the remainder, %r29 counts */
    ".macro divide name, result\n"
    "\tmillicode \\name\n"
    "\tcopy %r0, %r1\n\tldi 32, %r29\n"
    "1:\tadd %r26, %r26, %r26\n\taddc,nuv %r1, %r1, %r1\n\tb,n 2f\n\tcmpb,<<,n %r1, %r25, 3f\n"
    "2:\tsub %r1, %r25, %r1\n\tldo 1(%r26), %r26\n"
    "3:\taddib,<> -1, %r29, 1b\n\tnop\n"
    "\tbv %r0(%r31)\n\tcopy \\result, %r29\n"
    "\t.size \\name, .-\\name\n"
    "\t.endm\n"
    /* signed: of the magnitudes; the sign of the result, and where to return to, wait above the stack pointer */
    ".macro divide_signed name, unsigned, rest\n"
    "\tmillicode \\name\n"
    "\tstw %r31, 0(%r30)\n"
    "\t.if \\rest\n\tcopy %r26, %r1\n\t.else\n\txor %r26, %r25, %r1\n\t.endif\n"
    "\tstw %r1, 4(%r30)\n"
    "\tor,>= %r0, %r26, %r0\n\tsub %r0, %r26, %r26\n"
    "\tcmpiclr,<= 0, %r25, %r0\n\tsub %r0, %r25, %r25\n"
    "\tb,l \\unsigned, %r31\n\tnop\n"
    "\tldw 4(%r30), %r1\n\tldw 0(%r30), %r31\n"
    "\tcmpib,<,n -1, %r1, 4f\n\tsub %r0, %r29, %r29\n"
    "4:\tbv,n %r0(%r31)\n\tnop\n"
    "\t.size \\name, .-\\name\n"
    "\t.endm\n"
    "\tdivide $$divU, %r26\n\tdivide $$remU, %r1\n"
    "\tdivide_signed $$divI, $$divU, 0\n\tdivide_signed $$remI, $$remU, 1\n"
    /* %r22 is the address of a function, or that of its address and its data's, with 2 added */
    "\tmillicode $$dyncall\n"
    "\tbb,>=,n %r22, 30, 5f\n\tdepwi 0, 31, 2, %r22\n\tldw 4(%r22), %r19\n\tldw 0(%r22), %r22\n"
    "5:\tbv %r0(%r22)\n\tstw %r2, -24(%r30)\n"
    "\t.size $$dyncall, .-$$dyncall\n"
    "\t.text\n");
