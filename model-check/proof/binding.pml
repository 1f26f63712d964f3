/* The life of one binding in any surroundings, for Spin: a second opinion on model-check/src/proof.
 *
 * Written by hand from the rules in docs/PROTOCOL.md, section 4; nothing is generated from the Rust code. One process
 * chooses freely among everything that either side may do, so that Spin looks at every order. `cargo xtask proof` runs it and
 * compares the number of states with that of the Rust system.
 *
 * -DFLAW=1, 2 or 3: with a flaw that must be found.  -DVALUE: the client only needs values.  -DLOSSY: VMs may be lost, or declared lost while they live.
 */

#ifndef FLAW
#define FLAW 0
#endif

#define UNORDERED 0
#define LENDS     1
#define DROPPED   2
#define PLOST     3

#define HOME      0
#define LENT      1
#define RECALLED  2
#define RECALLEDL 3   /* for good */

#define NEVER     0
#define OUTDATED  1
#define PRESENT   2

#define DOWN      0
#define STARTING  1
#define STARTED   2
#define DIED      3

#define UNKNOWN   0
#define IDLE      1
#define RUNNING   2
#define LEAVING   3
#define GONE      4
#define CLOST     5

#define NONE      0
#define BOUND     1
#define HELD      2
#define RECALL    3
#define RECALLL   4   /* for good */

/* Notices to the client. */
#define BIND      1
#define LOAN      2
#define REQ       3
#define REQL      4   /* for good */

byte prov = UNORDERED;
byte loan, told, life;
bit removing, leaving, announced;
byte body = UNKNOWN;
byte hold;
bit knows, pforgot, cforgot;
chan there = [8] of { byte, bit };
chan back = [8] of { bit };

hidden byte m, i, n, f;

#ifdef VALUE
#define OUT   (0)
#define VALUED 1
#else
#define OUT   (loan != HOME)
#define VALUED 0
#endif

/* Values concern nobody where nothing is lent, or where the client does not know the binding. */
inline settle() {
    if
    :: prov != LENDS ->
        loan = HOME; told = NEVER; life = DOWN; removing = 0; leaving = 0; announced = 0;
        knows = 0;
        n = len(there); i = 0;
        do
        :: i < n -> there?m,f; there!m,0; i++
        :: else -> break
        od
    :: else
    fi;
    if
    :: hold == NONE -> knows = 0
    :: else
    fi;
    m = 0; i = 0; n = 0; f = 0
}

/* A start has chosen other values: each text told before may happen to be the same again, or not. */
inline renew() {
    n = len(there); i = 0;
    do
    :: i < n ->
        there?m,f;
        if
        :: m == BIND -> if :: f = 0 :: f = 1 fi
        :: else
        fi;
        there!m,f; i++
    :: else -> break
    od;
    if
    :: hold != NONE -> if :: knows = 0 :: knows = 1 fi
    :: else
    fi
}

inline drop() { prov = DROPPED }

/* The client says that a binding is not in use. */
inline confirm(last) {
    back!last;
    if
    :: last -> hold = NONE
    :: else -> hold = BOUND
    fi
}

inline give_back() {
    if
    :: hold == RECALL -> confirm(0)
    :: hold == RECALLL -> confirm(1)
    :: else
    fi
}

#define STANDS    (life == STARTED || life == DIED)
#define USED      (body == RUNNING && hold >= HELD)

#define A4 (!(hold >= RECALL && body != RUNNING))
#define A3 (!(cforgot && hold != NONE) && !(pforgot && prov == LENDS))
#ifdef VALUE
#define A2 (1)
#define A6 (1)
#else
#define A2 (!(prov == LENDS && (loan == LENT || loan == RECALLED) && !STANDS) && \
            (!USED || prov == PLOST || pforgot || (prov == LENDS && OUT && STANDS)))
#define A6 (!USED || prov == PLOST || pforgot || knows)
#endif
#define BOUNDED (len(there) <= 4 && len(back) <= 4)

active proctype world() {
end:
    do
    :: !(A2 && A3 && A4 && A6 && BOUNDED) -> assert(0)

    /* The provider's side. */
    :: atomic { prov == UNORDERED -> drop(); settle() }
    :: atomic { prov == UNORDERED && !pforgot ->
           prov = LENDS;
           if :: leaving = 0 :: leaving = 1 fi;
           if
           :: announced = 0
           :: announced = 1; if :: life = DOWN :: life = STARTING :: life = STARTED :: life = DIED fi
           fi }
    :: atomic { prov == LENDS && !announced && life == DOWN -> announced = 1 }
    :: atomic { prov == LENDS && announced && told == NEVER && !OUT && !removing -> told = PRESENT; there!BIND,1 }      /* P1 */
    :: atomic { prov == LENDS && (life == DOWN || life == DIED) && announced && !OUT && !leaving -> life = STARTING }   /* C1 */
    :: atomic { prov == LENDS && life == STARTING -> life = DOWN }
    :: atomic { prov == LENDS && life == STARTING -> life = STARTED }
    :: atomic { prov == LENDS && life == STARTING ->
           life = STARTED;
           if :: told != NEVER -> told = OUTDATED :: else fi;
           renew(); settle() }
#ifndef VALUE
    :: atomic { prov == LENDS && life == STARTED && loan == HOME && !leaving ->                                         /* P2 */
#if FLAW != 2
           if :: told != PRESENT -> there!BIND,1 :: else fi;               /* The flaw: clients are not told new values. */
#endif
           there!LOAN,0; told = PRESENT; loan = LENT }
    :: atomic { prov == LENDS && loan == LENT && STANDS ->                                                              /* P3 */
           if :: leaving -> loan = RECALLEDL; there!REQL,0 :: else -> loan = RECALLED; there!REQ,0 fi }
    :: atomic { prov == LENDS && loan == HOME && told != NEVER && leaving && life != STARTING ->
           loan = RECALLEDL; there!REQL,0 }
#endif
#if FLAW == 1
    :: atomic { prov == LENDS && life == STARTED -> life = DOWN }          /* It stops and waits for nobody. */
#endif
    :: atomic { prov == LENDS && life == STARTED && !OUT -> life = DOWN }                                               /* P4 */
    :: atomic { prov == LENDS && life == STARTED -> life = DIED }
    :: atomic { prov == LENDS && !leaving -> leaving = 1 }
    :: atomic { prov == LENDS && !removing ->                                                                           /* P5 */
           if
           :: !OUT && told == NEVER -> drop(); settle()
#ifdef VALUE
           :: told != NEVER -> removing = 1; there!REQL,0
#else
           :: (loan == HOME && told != NEVER) || loan == LENT -> removing = 1; loan = RECALLEDL; there!REQL,0
           :: loan >= RECALLED -> removing = 1
#endif
           fi }
    :: atomic { prov == LENDS && leaving && (life == DOWN || life == DIED) && !OUT && told == NEVER -> drop(); settle() } /* P7 */
#ifdef VALUE
    :: atomic { prov == LENDS && leaving && (life == DOWN || life == DIED) && told != NEVER -> there!REQL,0; drop(); settle() }
#endif

    /* A confirmation reaches the provider (P6). */
    :: atomic { prov != PLOST && nempty(back) ->
           back?f;
           if
           :: prov == LENDS && !pforgot ->
               if
               :: f -> drop()
#ifndef VALUE
               :: !f && loan >= RECALLED && (removing || leaving) -> loan = RECALLEDL; there!REQL,0
               :: !f && loan >= RECALLED && !(removing || leaving) -> loan = HOME
               :: !f && loan < RECALLED
#else
               :: !f
#endif
               fi
           :: else
           fi;
           settle() }

    /* The client's side. */
    :: atomic { body == UNKNOWN -> body = IDLE; if :: VALUED && hold == BOUND -> hold = HELD :: else fi }
    :: atomic { body == IDLE -> body = RUNNING }
    :: atomic { body == IDLE -> body = LEAVING }
#if FLAW == 3
    :: atomic { body == RUNNING -> body = IDLE }                           /* It stops and keeps what is recalled. */
#endif
    :: atomic { body == RUNNING -> body = IDLE; give_back(); settle() }                                                 /* C4 */
    :: atomic { body == RUNNING -> body = LEAVING; give_back(); settle() }
    :: atomic { body == RUNNING && hold >= RECALL -> give_back(); settle() }                                            /* C3, C5 */
    :: atomic { body == LEAVING && hold != NONE -> confirm(1); settle() }                                               /* P7 */
    :: atomic { body == LEAVING && hold == NONE -> body = GONE }

    /* A notice reaches the client. */
    :: atomic { body != CLOST && nempty(there) ->
           there?m,f;
           if
           :: cforgot
           :: !cforgot && m == BIND ->
               knows = f;
               if
               :: hold == NONE && body == GONE -> back!1                                                                /* C6 */
               :: hold == NONE && body != GONE -> if :: VALUED && body != UNKNOWN -> hold = HELD :: else -> hold = BOUND fi
               :: hold != NONE
               fi
           :: !cforgot && m == LOAN -> if :: hold == BOUND -> hold = HELD :: else fi
           :: !cforgot && (m == REQ || m == REQL) ->
               if
               :: hold == NONE
               :: hold == HELD && body == RUNNING -> if :: m == REQL -> hold = RECALLL :: else -> hold = RECALL fi
               :: hold == BOUND || (hold == HELD && body != RUNNING) ->
                   if :: m == REQL -> confirm(1) :: else -> confirm(0) fi
               :: hold >= RECALL -> if :: m == REQL -> hold = RECALLL :: else fi
               fi
           fi;
           settle() }

#ifdef LOSSY
    /* An agent is told to forget the other's VM (M7). */
    :: atomic { !pforgot && prov != PLOST -> pforgot = 1; if :: prov == LENDS -> drop() :: else fi; settle() }
    :: atomic { !cforgot && body != CLOST -> cforgot = 1; hold = NONE; settle() }
    /* A VM is lost. */
    :: atomic { prov != PLOST -> prov = PLOST; settle() }
    :: atomic { body != CLOST -> body = CLOST; hold = NONE; settle() }
#endif
    od
}
