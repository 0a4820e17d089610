/*
 * One change, and the undo that its Terms may order, with everything that can go wrong around them:
 * two executors that may die at any point, a network that holds a request and lands it late or never, answers
 * that are lost, refused, or say "done" too early, a person, the clocks, the kill switch, and the sweeper that
 * reconciles. README.md says what each part stands for and what is left out. `check` verifies this file.
 *
 * A flag with -D makes it another model:
 *   LIAR    requests land after the declared flight, and the person who resolves guesses
 *   WALK    biases a random simulation, for traces
 *   SMALL   one way in, two ops, a clean-up, no kill switch: for the search for circles
 *   LIVE    smaller still, and with the LTL formula: for the search with weak fairness
 *   REACH   =n makes reaching place n an error, and so a trace that goes there
 *   others  seeded bugs; every one must be found. Each is named where it stands.
 *
 * Lines that begin with EV are a trace: what somebody did, and then the moves it made. The engine replays them.
 */

mtype:status = { none, pending, approved, applying, applied, failed, partial, in_doubt, expired, rejected, superseded };
mtype:outcome = { nothing, yes, no, unknown, missed };	/* missed: answered as done, and the old state is there */
mtype:level = { agent, one, two };	/* a ticket; one person; two people */

/* The table of change.go. Its form is read by a test: one line a status. */
#define TABLE(f, t) ( \
	(f == none && (t == pending || t == approved)) || \
	(f == pending && (t == pending || t == approved || t == expired || t == rejected || t == superseded)) || \
	(f == approved && (t == applying || t == expired || t == rejected || t == superseded)) || \
	(f == applying && (t == applying || t == applied || t == failed || t == partial || t == in_doubt)) || \
	(f == in_doubt && (t == in_doubt || t == applied || t == failed || t == partial)) || \
	(f == applied && (t == applied || t == in_doubt)) || \
	(f == partial && (t == partial || t == in_doubt)) || \
	(f == failed && (t == in_doubt)) )

/* ---- the durable row of change c; 0 is the change, 1 the undo that it ordered ---- */
mtype:status st[2] = none;
byte claim[2];			/* whose claim it carries: 0 nobody's */
byte ops[2];
mtype:outcome out[4] = nothing;	/* the recorded steps, at IX(change, op) */
bool unread[4];			/* a "yes" that is only an answer: nobody has seen the effect */
mtype:level level = agent;
byte people;			/* who said yes */
bool ordered;			/* on_failure: undo */
bool sight;			/* the target declares a flight, so the old state proves something once it is over */

/* ---- the world ---- */
byte age[2];			/* 1: too late to approve, 2: too late to start */
byte clock[2];			/* since the lease was renewed. 1: the owner must stop, 2: the lease is over, 3: and the flight */
bool off;			/* the kill switch */
byte flips;
byte wire[4];			/* requests on the way */
byte effects[4];
byte undone;			/* the op that change 1 takes back */

/* ---- what only the properties look at ---- */
bool consented[2];		/* was approved at some time */
bool forbidden[2];		/* a step was recorded while the switch was off */
bool overdue[2];		/* something was sent after its owner's time */
bool lostonce;			/* a commit of a claim was lost: twice would be going round in circles */
bool again;			/* the same call was sent again */
mtype:outcome proof[4] = nothing;	/* what the owner itself knows, at the end */

hidden byte k; hidden byte y; hidden byte n; hidden byte u;
hidden byte rest; hidden byte stop; hidden byte contrary; hidden byte born;

#ifdef WALK	/* a random walk, for traces: without it nearly every life ends in a rejection or a crash */
bool meddling; bool frail; bool hasty;
#define MAYMEDDLE meddling
#define MAYCRASH frail
#define MAYTICK (hasty || timeout)
#else
#define MAYMEDDLE true
#define MAYCRASH true
#define MAYTICK true
#endif

#define IX(c, i) (2*(c)+(i))
#define ENDED(c) (st[c] == applied || st[c] == failed || st[c] == partial)
#define DEAD(c) (st[c] == expired || st[c] == rejected || st[c] == superseded || st[c] == failed)
#define SETTLED(c) (ENDED(c) || DEAD(c))
#define LANDED(c, i) (effects[IX(c, i)] > 0)
/* What a read of the object shows. An undo puts the old state back, and the effect is not seen any more. */
#define SEEN(c, i) (LANDED(c, i) && !(c == 0 && i == undone && effects[2] > 0))
#define CLAIMABLE(c) (st[c] == approved || (c == 0 && st[c] == pending && level == agent))
#define LATE(c) ((st[c] == pending && age[c] >= 1) || (st[c] == approved && age[c] == 2))
#define ALL(c) (LANDED(c, 0) && (ops[c] == 1 || LANDED(c, 1)))
#define NOTHING(c) (!LANDED(c, 0) && !LANDED(c, 1))

#ifdef NAIVE		/* seeded: the old state is taken for proof while a request may still land */
#define FINAL(c) (sight && clock[c] >= 2)
#else
#define FINAL(c) (sight && clock[c] == 3)
#endif

/* Places that random walks come to too seldom. 1, 2, 3: an end state is contradicted by a late receipt (applied,
   failed, partial); 4: the owner speaks after the clean-up took back what it did; 5: what it knows is no receipt;
   6: an op that may be in flight is written down; 7: an answer
   that nobody looked after keeps it from ending. */
#ifdef REACH
bool reached;
#define PLACE(n) reached = reached || n == REACH
active proctype Reach() {
end:	reached -> assert(false)
}
#else
#define PLACE(n) skip
#endif

/* Nothing in here goes round in circles (`check` proves it), so every life comes to a rest; and there all is settled. */
#define REST(c) (st[c] == none || SETTLED(c))

/* Every change of a status. late: by the owner of the claim, after somebody else spoke. */
inline move(c, to, late) {
	assert(TABLE(st[c], to));
	assert(!ENDED(c) || to == st[c] || late);	/* end states are stable but for the late receipt */
	printf("EV   %d:%e>%e\n", c, st[c], to);
	assert(to != applying || consented[c]);
#ifdef REACH
	if
	:: ENDED(c) && to == in_doubt && st[c] == applied -> PLACE(1)
	:: ENDED(c) && to == in_doubt && st[c] == failed -> PLACE(2)
	:: ENDED(c) && to == in_doubt && st[c] == partial -> PLACE(3)
	:: st[c] == in_doubt && late && effects[2] > 0 -> PLACE(4)
	:: else
	fi;
#endif
	st[c] = to;
	consented[c] = consented[c] || to == approved;
#ifdef LIAR
	/* A lie may be believed, but not against what the owner saw or was told by a refusal. */
	assert(to != failed || (proof[IX(c, 0)] != yes && proof[IX(c, 1)] != yes));
	assert(to != applied || (proof[IX(c, 0)] != no && proof[IX(c, 1)] != no))
#else
	assert(to != applied || ALL(c));
	assert(to != failed || NOTHING(c));
	assert(to != partial || !(ALL(c) || NOTHING(c)))
#endif
}

/* Settle of change.go: how many took effect, did not, are unknown. */
inline count(c, stopped) {
	k = 0; y = 0; n = 0; u = 0; rest = false;
	do
	:: k < ops[c] ->
		if
		:: out[IX(c, k)] == yes -> y++
		:: out[IX(c, k)] == no -> n++
		:: out[IX(c, k)] == unknown || out[IX(c, k)] == missed -> u++
		:: out[IX(c, k)] == nothing && (stopped || rest) -> n++
		:: else -> u++; rest = true	/* sent one at a time: at most one is in flight */
		fi;
		k++
	:: else -> break
	od
}

inline conclude(c, stopped, late) {
	count(c, stopped);
	born = false;
	if
	:: u > 0 -> move(c, in_doubt, late)
	:: u == 0 && n == 0 -> move(c, applied, late)
	:: u == 0 && n > 0 && y == 0 -> move(c, failed, late)
	:: else ->
		move(c, partial, late);
#ifndef UNDO_APART	/* seeded: the clean-up is not born in the transaction that settles its parent */
		bear(c)
#endif
	fi
}

/* In doubt, it does not end on the strength of an answer that nobody looked after. */
inline concludeSeen(c, late) {
	if
#ifndef LATE_UNREAD	/* seeded: it does */
	:: st[c] == in_doubt && (unread[IX(c, 0)] || unread[IX(c, 1)]) -> PLACE(7); born = false; move(c, in_doubt, late)
#endif
	:: else -> conclude(c, true, late)
	fi
}

inline bear(c) {
	if
	:: c == 0 && ordered && !off && st[1] == none ->
		undone = (out[0] == yes -> 0 : 1);
		ops[1] = 1;
		born = true;
		move(1, approved, false)
	:: c == 0 && ordered && !off && st[1] != none && DEAD(1) ->
		printf("EV beyond\n")	/* a second clean-up is born; this model does not follow it */
	:: else
	fi
}

#ifdef LATE_TRUSTED	/* seeded: an answer that came late is not looked after */
bool heard[4];
#define UNREAD(c, i) (unread[IX(c, i)] && !heard[IX(c, i)])
#else
#define UNREAD(c, i) unread[IX(c, i)]
#endif

/* An op of which more may be learned: not known, answered but never looked at, or the one that may be in flight. */
#define ASK(c, i) (i < ops[c] && (out[IX(c, i)] == unknown || out[IX(c, i)] == missed || \
	(out[IX(c, i)] == yes && UNREAD(c, i)) || (out[IX(c, i)] == nothing && (i == 0 || out[IX(c, 0)] == yes))))
#define TELLS(c, i) (ASK(c, i) && (SEEN(c, i) || out[IX(c, i)] == yes || out[IX(c, i)] == nothing || \
	(FINAL(c) && out[IX(c, i)] != missed)))
#define LEARNS(c) (TELLS(c, 0) || TELLS(c, 1) || !(ASK(c, 0) || ASK(c, 1)))

inline reconcileOne(c, i) {
	if
	:: !ASK(c, i)
	:: ASK(c, i) && SEEN(c, i) -> out[IX(c, i)] = yes; unread[IX(c, i)] = false
	:: ASK(c, i) && !SEEN(c, i) && out[IX(c, i)] == yes ->
#ifndef HALF_SEEN	/* seeded: it counts as done because another one is seen */
		/* ignored, or taken back by somebody: a person who looks may know, the passing of time does not */
		out[IX(c, i)] = missed; unread[IX(c, i)] = false
#endif
		skip
	:: ASK(c, i) && !SEEN(c, i) && out[IX(c, i)] != yes && out[IX(c, i)] != missed && FINAL(c) -> out[IX(c, i)] = no
	:: else ->
#ifndef FORGETFUL	/* seeded: it is read from the one before having taken effect, which may be doubted next */
		if	/* that it may be in flight is written down */
		:: out[IX(c, i)] == nothing -> PLACE(6); out[IX(c, i)] = unknown
		:: else
		fi
#else
		if
		:: out[IX(c, i)] == nothing -> stop = (i == 1 && ops[c] == 2 && out[IX(c, 0)] == yes && unread[IX(c, 0)] && !SEEN(c, 0))
		:: else
		fi
#endif
	fi
}

inline reconcile(c) {
	stop = true;
	if	/* the second is asked first, because what is known of the first says whether it may be in flight */
	:: ops[c] == 2 -> reconcileOne(c, 1)
	:: else
	fi;
	reconcileOne(c, 0);
	conclude(c, stop, false)
}

/* What the owner knows goes into the row. Not knowing is no receipt: it never takes the place of an effect that was
   seen, and neither does an answer that nobody looked after, of what was looked after already. */
#ifdef LATE_UNKNOWN	/* seeded: it does */
#define PROTECTED(c, i, a) false
#else
#define PROTECTED(c, i, a) (((know[i] == unknown || know[i] == missed) && out[IX(c, i)] == yes && !unread[IX(c, i)]) || \
	(know[i] == yes && a && (out[IX(c, i)] == missed || (out[IX(c, i)] == yes && !unread[IX(c, i)]))))
#endif
#define CONTRADICTS(c, i, a) (know[i] != nothing && know[i] != out[IX(c, i)] && \
	!(know[i] == no && out[IX(c, i)] == nothing) && !PROTECTED(c, i, a))

inline merge(c, i, answered, late) {
	if
	:: know[i] == nothing
	:: know[i] != nothing && late && PROTECTED(c, i, answered) -> PLACE(5)
	:: else ->
		out[IX(c, i)] = know[i]; unread[IX(c, i)] = (know[i] == yes && answered);
#ifdef LATE_TRUSTED
		heard[IX(c, i)] = late
#endif
	fi
}

#ifdef NO_FENCE		/* seeded: the owner does not look at its lease before it sends */
#define FENCED(c) false
#else
#ifdef RENEW_LATE	/* seeded: recording a late answer renews the right to send */
#define FENCED(c) (clock[c] >= 1 && !renewed)
#else
#define FENCED(c) (clock[c] >= 1)
#endif
#endif

#define CRASH :: atomic { MAYCRASH -> printf("EV %c.crash\n", 64+me); goto gone }

proctype Executor(byte me) {
	byte c; byte i;
	mtype:outcome know[2] = nothing;	/* in memory: a crash takes it */
	bool renewed, sent;			/* for seeded bugs */

idle:
	atomic { know[0] = nothing; know[1] = nothing; i = 0; c = 0; renewed = false; sent = false };
end_idle:
	if
	:: atomic { !off && CLAIMABLE(0) -> printf("EV %c.try 0\n", 64+me) }
	:: atomic { !off && CLAIMABLE(1) -> c = 1; printf("EV %c.try 1\n", 64+me) }
	fi;

ready:	/* the row was read, policy and evidence were checked; then the claim: one compare-and-swap */
#ifdef SEND_FIRST	/* seeded: sent before the claim is durable */
	atomic { wire[IX(c, 0)]++; sent = true; printf("EV %c.send\n", 64+me) };
#endif
	if
	:: atomic {
		if
#ifdef CLAIM_TORN	/* seeded: what was read above is believed, and the claim overwrites */
		:: st[c] == applying ->
			printf("EV %c.claim\n", 64+me); claim[c] = me; goto observe
#endif
		:: !CLAIMABLE(c) -> printf("EV %c.claim moved\n", 64+me); goto idle
#ifndef NO_EXPIRY	/* seeded: the clock is not asked at the claim */
		:: CLAIMABLE(c) && LATE(c) -> printf("EV %c.claim late\n", 64+me); move(c, expired, false); goto idle
		:: CLAIMABLE(c) && !LATE(c) && off -> printf("EV %c.claim off\n", 64+me); goto idle
		:: CLAIMABLE(c) && !LATE(c) && !off ->
#else
		:: CLAIMABLE(c) && off -> printf("EV %c.claim off\n", 64+me); goto idle
		:: CLAIMABLE(c) && !off ->
#endif
			stop = false;
			if
			:: printf("EV %c.claim\n", 64+me)
			:: printf("EV %c.claim answer_lost\n", 64+me); stop = true
			:: !lostonce -> lostonce = true; printf("EV %c.claim commit_lost\n", 64+me); goto ask
			fi;
			assert(!LATE(c));
			if
			:: st[c] == pending -> move(c, approved, false)
			:: else
			fi;
			claim[c] = me; clock[c] = 0; age[c] = 0; lostonce = false;
			move(c, applying, false);
			if
			:: stop -> goto ask
			:: else -> goto observe
			fi
		fi }
	CRASH
	fi;

ask:	/* nobody knows whether the claim was committed: the id in the row tells */
	if
#ifdef NO_CLAIM_ID	/* seeded: any claim is taken for one's own */
	:: atomic { st[c] == applying -> printf("EV %c.ask\n", 64+me); goto observe }
	:: atomic { st[c] != applying -> printf("EV %c.ask\n", 64+me); goto idle }
#else
	:: atomic { claim[c] == me -> printf("EV %c.ask\n", 64+me); goto observe }
	:: atomic { claim[c] != me -> printf("EV %c.ask\n", 64+me); goto idle }
#endif
	CRASH
	fi;

observe:	/* the last look before the first send */
	if
	:: atomic { printf("EV %c.observe\n", 64+me);
		if	/* before the second read, a lease that runs down is renewed */
		:: ops[c] == 2 && clock[c] > 0 && st[c] == applying -> clock[c] = 0; move(c, applying, false)
		:: else
		fi;
		goto check }
	:: atomic { printf("EV %c.observe fails\n", 64+me); goto settle }
	CRASH
	fi;

check:	/* before each send: the switch, and whether the claim is surely ours */
	if
#ifndef NO_SWITCH	/* seeded: the switch is read at the claim only */
	:: atomic { off -> printf("EV %c.check off\n", 64+me); goto readback }
	:: atomic { !off && FENCED(c) -> printf("EV %c.check slow\n", 64+me); goto readback }
	:: atomic { !off && !FENCED(c) -> printf("EV %c.check\n", 64+me); goto send }
#else
	:: atomic { FENCED(c) -> printf("EV %c.check slow\n", 64+me); goto readback }
	:: atomic { !FENCED(c) -> printf("EV %c.check\n", 64+me); goto send }
#endif
	CRASH
	fi;

send:	/* its context ends before its lease */
	if
	:: atomic { FENCED(c) -> know[i] = unknown; printf("EV %c.send ended\n", 64+me); goto record }
	:: atomic { !FENCED(c) ->
		printf("EV %c.send\n", 64+me);
		assert(!forbidden[c]);
		overdue[c] = overdue[c] || clock[c] >= 1;
		if
		:: sent -> sent = false
		:: else -> wire[IX(c, i)]++
		fi;
		goto wait }
	CRASH
	fi;

wait:
	if
	:: atomic { clock[c] == 0 -> know[i] = yes; printf("EV %c.answer yes\n", 64+me) }
	:: atomic { wire[IX(c, i)] > 0 && !LANDED(c, i) ->	/* a refusal proves that there was and will be none */
		wire[IX(c, i)]--; know[i] = no; printf("EV %c.answer no\n", 64+me) }
	:: atomic { printf("EV %c.answer lost\n", 64+me);
#ifdef RETRY		/* seeded: a lost answer, so once more */
		if
		:: !renewed -> renewed = true; goto send
		:: else
		fi;
#endif
		know[i] = unknown }
	CRASH
	fi;
#ifdef STEP_AFTER	/* seeded: the step is recorded after the next send */
	if
	:: i == 0 && ops[c] == 2 && know[0] == yes -> i = 1; goto check
	:: else
	fi;
#endif

record:	/* durable before the next send */
	if
	:: atomic {
		printf("EV %c.record\n", 64+me);
		stop = (st[c] != applying);	/* the claim is not held any more: nothing more is sent */
		if
		:: st[c] == applying ->
#ifdef STEP_AFTER
			merge(c, 0, true, false);
#endif
			merge(c, i, true, false); clock[c] = 0; move(c, applying, false)
#ifndef LATE_IGNORED	/* seeded: who comes late is not heard */
		:: st[c] == in_doubt && !PROTECTED(c, i, true) -> merge(c, i, true, true); move(c, in_doubt, true); renewed = true
		:: ENDED(c) && CONTRADICTS(c, i, true) -> move(c, in_doubt, true); merge(c, i, true, true); renewed = true
#endif
		:: else
		fi;
		forbidden[c] = forbidden[c] || off;
		if
#ifdef RENEW_LATE
		:: know[i] == yes && i+1 < ops[c] -> i++; goto check
#else
		:: know[i] == yes && i+1 < ops[c] && !stop -> i++; goto check
		:: stop && i == 1 -> know[0] = nothing	/* that was judged already, and may be undone */
#endif
		:: else
		fi }
	CRASH
	fi;

readback:	/* the answer is not believed: what is there now counts */
	if
	:: atomic { know[0] != yes && know[1] != yes -> printf("EV %c.readback\n", 64+me) }
	:: atomic { know[0] == yes || know[1] == yes ->
		stop = true;
		if
		:: printf("EV %c.readback\n", 64+me)
		:: printf("EV %c.readback fails\n", 64+me); stop = false
		fi;
		if	/* before it reads, a lease that runs down is renewed; held or not, it reads */
		:: clock[c] > 0 && st[c] == applying -> clock[c] = 0; move(c, applying, false)
		:: else
		fi;
#ifndef TRUSTING	/* seeded: it is believed */
#ifdef LATE_BELIEVED	/* seeded: it is believed of an owner that comes late */
		if
		:: clock[c] > 0 && st[c] != applying -> goto settle
		:: else
		fi;
#endif
		if
		:: know[0] == yes && !(stop && SEEN(c, 0)) -> know[0] = missed
		:: else
		fi;
		if
		:: know[1] == yes && !(stop && SEEN(c, 1)) -> know[1] = missed
		:: else
		fi
#endif
		}
	CRASH
	fi;

settle:
	if
	:: atomic {
		printf("EV %c.settle\n", 64+me);
		contrary = false;
		if
		:: ENDED(c) && (CONTRADICTS(c, 0, false) || CONTRADICTS(c, 1, false)) -> contrary = true
		:: else
		fi;
		born = false;
#ifndef LATE_IGNORED
#ifdef LIAR
		if
		:: know[0] == yes || know[0] == no -> proof[IX(c, 0)] = know[0]
		:: else
		fi;
		if
		:: know[1] == yes || know[1] == no -> proof[IX(c, 1)] = know[1]
		:: else
		fi;
#endif
		if
		:: contrary -> move(c, in_doubt, true)
		:: else
		fi;
		if
		:: st[c] == applying || st[c] == in_doubt ->
			stop = (st[c] != applying);
			merge(c, 0, false, stop); merge(c, 1, false, stop);
			concludeSeen(c, true)
		:: else
		fi;
#else
		if
		:: st[c] == applying -> merge(c, 0, false, false); merge(c, 1, false, false); conclude(c, true, false)
		:: else
		fi;
#endif
#ifdef LIAR
		/* The late receipt was heard: the record does not end against what the owner knows. */
		assert(st[c] != failed || (know[0] != yes && know[1] != yes));
		assert(st[c] != applied || (know[0] != no && know[1] != no));
#endif
		know[0] = nothing; know[1] = nothing; i = 0; renewed = false;
		if
		:: born -> c = 1; goto ready
		:: !born && st[c] == in_doubt -> goto look
#ifndef UNDO_APART
		:: else -> goto idle
#else
		:: else
#endif
		fi }
	CRASH
	fi;
#ifdef UNDO_APART
	if
	:: atomic { st[c] == partial -> bear(c) ; goto idle }
	:: atomic { st[c] != partial -> goto idle }
	CRASH
	fi;
#endif

look:	/* one look at once; the rest is the sweeper's */
	if
	:: atomic {
		printf("EV %c.look\n", 64+me);
		born = false;
		if
		:: st[c] == in_doubt && LEARNS(c) -> reconcile(c)
		:: else
		fi;
		if
		:: born -> c = 1; goto ready
		:: else -> goto idle
		fi }
	CRASH
	fi;

gone:	/* dead for good: what it knew is gone with it */
	atomic { know[0] = nothing; know[1] = nothing; i = 0; c = 0; renewed = false; sent = false }
}

/* The network: holds a request as long as it likes, and never longer than the declared flight. */
#ifdef LIAR
#define MAYLAND(c) true
#define HONEST(c) (st[c] != pending && st[c] != approved && st[c] != expired && st[c] != rejected && st[c] != superseded)
#else
#define MAYLAND(c) (clock[c] < 3 || overdue[c])	/* the flight counts from the lease, for what was sent within it */
#define HONEST(c) (st[c] == applying || st[c] == in_doubt)	/* never once the outcome was declared */
#endif

inline land(c, i) {
	wire[IX(c, i)]--; effects[IX(c, i)]++;
	printf("EV net.land %d %d\n", c, i);
	assert(effects[IX(c, i)] <= 1);
	assert(consented[c]);
	assert(HONEST(c))
}

active proctype Network() {
end:	do
	:: atomic { wire[0] > 0 && MAYLAND(0) -> land(0, 0) }
	:: atomic { wire[1] > 0 && MAYLAND(0) -> land(0, 1) }
	:: atomic { wire[2] > 0 && MAYLAND(1) -> land(1, 0) }
	od
}

#define OPEN(c) (st[c] == pending || st[c] == approved)
#define RUNNING(c) (st[c] == applying || st[c] == in_doubt)

active proctype Clock() {
end:	do
	:: atomic { MAYTICK && OPEN(0) && age[0] < 2 -> age[0]++; printf("EV clock.age 0 %d\n", age[0]) }
	/* a claim outlives a flight: while one lease runs down, the flight of the older one is over */
	:: atomic { MAYTICK && OPEN(1) && age[1] < 2 -> age[1] = 2; clock[0] = 3; printf("EV clock.age 1 2\n") }
	:: atomic { MAYTICK && RUNNING(0) && clock[0] < 3 -> clock[0]++; printf("EV clock.lease 0 %d\n", clock[0]) }
	:: atomic { MAYTICK && RUNNING(1) && clock[1] < 3 -> clock[1]++; clock[0] = 3; printf("EV clock.lease 1 %d\n", clock[1]) }
	od
}

inline expire(c) { printf("EV sweeper.expire %d\n", c); move(c, expired, false) }
inline doubt(c) { printf("EV sweeper.doubt %d\n", c); move(c, in_doubt, false) }
inline lookAt(c) { printf("EV sweeper.reconcile %d\n", c); reconcile(c) }

active proctype Sweeper() {
end:	do
	:: atomic { LATE(0) -> expire(0) }
	:: atomic { LATE(1) -> expire(1) }
	:: atomic { st[0] == applying && clock[0] >= 2 -> doubt(0) }
	:: atomic { st[1] == applying && clock[1] >= 2 -> doubt(1) }
	:: atomic { st[0] == in_doubt && LEARNS(0) -> lookAt(0) }
	:: atomic { st[1] == in_doubt && LEARNS(1) -> lookAt(1) }
#ifdef UNDO_APART
	:: atomic { st[0] == partial && ordered && flips == 0 -> assert(st[1] != none) }
#endif
	od
}

/* A person is never obliged to anything. */
#define ASKED(c, i) (ASK(c, i) && out[IX(c, i)] != yes)	/* what is only an answer is looked after instead */
#ifdef LIAR
#define LOOKED(c) (clock[c] >= 2)
#else
#define LOOKED(c) (clock[c] == 3)
#endif
#define MAYRESOLVE(c) (st[c] == in_doubt && LOOKED(c))

inline found(c, i, what) {
	if
	:: ASKED(c, i) -> out[IX(c, i)] = what
	:: else
	fi
}

inline resolve(c, first, second) {
	if	/* the second first: see reconcile */
	:: ops[c] == 2 -> found(c, 1, second)
	:: else
	fi;
	found(c, 0, first);
	concludeSeen(c, false);
	if	/* and then it looks, if there is something to look after */
	:: st[c] == in_doubt && LEARNS(c) -> reconcile(c)
	:: else
	fi
}

active proctype Person() {
end:	do
	:: atomic { st[0] == pending && level != agent && age[0] == 0 ->
		people++;
		printf("EV person.approve 0\n");
		if
		:: level == two && people == 1 -> move(0, pending, false)
		:: else -> people = 0; level = one; move(0, approved, false)
		fi }
	:: atomic { st[0] == pending && MAYMEDDLE -> printf("EV person.reject 0\n"); move(0, rejected, false) }
#ifndef REJECT_TORN	/* seeded: a rejection that was decided on an old row is written over the claim */
	:: atomic { st[0] == approved && MAYMEDDLE -> printf("EV person.reject 0\n"); move(0, rejected, false) }
#else
	:: st[0] == approved; atomic { printf("EV person.reject 0\n"); move(0, rejected, false) }
#endif
	:: atomic { st[1] == approved && MAYMEDDLE -> printf("EV person.reject 1\n"); move(1, rejected, false) }
	:: atomic { OPEN(0) && MAYMEDDLE -> printf("EV person.replace 0\n"); move(0, superseded, false) }
	:: atomic { (st[0] == applied || st[0] == partial) && level == agent && !again && (st[1] == none || DEAD(1)) ->
		again = true; printf("EV person.again 0\n"); move(0, st[0], false) }
#ifdef LIAR
	:: atomic { MAYRESOLVE(0) -> printf("EV person.resolve 0 1 1\n"); resolve(0, yes, yes) }
	:: atomic { MAYRESOLVE(0) -> printf("EV person.resolve 0 0 0\n"); resolve(0, no, no) }
#else
	:: atomic { MAYRESOLVE(0) ->
		printf("EV person.resolve 0 %d %d\n", LANDED(0, 0), LANDED(0, 1));
		resolve(0, (LANDED(0, 0) -> yes : no), (LANDED(0, 1) -> yes : no)) }
	:: atomic { MAYRESOLVE(1) ->
		printf("EV person.resolve 1 %d 0\n", LANDED(1, 0));
		resolve(1, (LANDED(1, 0) -> yes : no), no) }
#endif
	od
}

active proctype Switch() {
end:	do
	:: atomic { flips == 0 && !(REST(0) && REST(1)) -> flips = 1; off = true; printf("EV switch.off\n") }
	:: atomic { flips == 1 -> flips = 2; off = false; forbidden[0] = false; forbidden[1] = false; printf("EV switch.on\n") }
	od
}

init {
	atomic {
#if defined(SMALL) || defined(LIVE)	/* the smallest world that still has every way to be in doubt */
		ops[0] = 2; level = one; sight = true; flips = 2;
#ifndef LIVE
		ordered = true;
#endif
#else
		if
		:: ops[0] = 1
		:: ops[0] = 2
		fi;
		if
		:: level = agent
		:: level = one
		:: level = two
		fi;
		if
		:: sight = true
		:: sight = false
		fi;
#ifndef LIAR
		if
		:: ordered = true
		:: ordered = false
		fi;
#endif
#endif
#ifdef WALK
		if
		:: true
		:: true
		:: true
		:: meddling = true
		fi;
		if
		:: true
		:: frail = true
		fi;
		if
		:: true
		:: hasty = true
		fi;
		if
		:: ops[0] = 2	/* most of what can go wrong takes two */
		:: true
		fi;
		if
		:: ordered = true
		:: true
		fi;
#ifdef LIAR
		ordered = false;
#endif
#endif
		printf("EV set ops=%d level=%e sight=%d ordered=%d\n", ops[0], level, sight, ordered);
		move(0, pending, false);
		run Executor(1);
		run Executor(2)
	}
}

#ifndef WALK
active proctype Rest() {
end:	timeout -> assert(REST(0) && REST(1))
}
#endif

#ifdef LIVE
ltl settles { <>[] (REST(0) && REST(1)) }
#endif
