import AccessPolicy
import EventLoop
import HTTPCore
import PinfoldConfiguration

// The end of phase 2: whether the rate of the rule that allows a request lets it proceed now, later
// or not at all, and how fast its content passes.
//
//     routing ── within the rate ──► routing goes on
//        ├── over: refuse ──► 429
//        └── over: delay ──► delayed ── its turn ──► routing goes on
extension Exchange {
    /// What the rates of rules have to do with an exchange.
    final class Limiting {
        /// How a request goes on that has waited.
        enum Step {
            case request(Origin)
            case tunnel(BoundAuthority, TunnelHandling)
        }

        /// The rule that decided, if it has a rate.
        let use: RateUse?
        /// Rules that only report.
        let reported: [RateUse]
        /// Paces the client's stream.
        fileprivate(set) var paced: PacedStream?
        /// What it waits for, under which configuration, and until when at most, in the loop's
        /// milliseconds.
        fileprivate var wait: (next: Step, policy: PolicySnapshot, end: Int64)?

        init(_ use: RateUse?, reported: [RateUse]) {
            self.use = use
            self.reported = reported
        }
    }

    /// Whether the request may proceed under the rates of the rules that matched. If not, it has
    /// been answered, or waits for its turn, after which it does.
    @inline(never)
    func isWithinRates(
        _ rules: HostRules, _ judgement: AccessRules.Judgement, before next: Limiting.Step
    ) -> Bool {
        let turn = RateTurn(worker: environment.index, token: token, ticket: report.id)
        let deciding = judgement.rule.flatMap { use(of: $0, rules) }
        // After a wait during which the configuration has changed.
        if let known = limiting?.use, known.isAdmitted {
            if let deciding, deciding.account === known.account {
                pace(known, next)
                return true
            }
            leaveRates(sent: (0, 0))
        }
        let reported = judgement.reported.compactMap { use(of: $0, rules) }
        for use in reported { _ = use.ask(turn, mayWait: false) }
        guard deciding != nil || !reported.isEmpty else { return true }
        limiting = Limiting(deciding, reported: reported)
        guard let deciding else { return true }
        return isAdmitted(deciding, before: next)
    }

    private func isAdmitted(_ use: RateUse, before next: Limiting.Step) -> Bool {
        // Whoever waits is called by its token.
        let mayWait = use.limits.excess == .delay && register()
        let turn = RateTurn(worker: environment.index, token: token, ticket: report.id)
        switch use.ask(turn, mayWait: mayWait) {
        case .admitted:
            pace(use, next)
            return true
        case .refused(let refusal):
            refuse(use, refusal)
            return false
        case .waits(let nanoseconds):
            guard goesOn(after: .decided(.delay)) else { return false }
            let longest = RateState<RateTurn>.longestWait / 1_000_000
            limiting?.wait = (next, environment.policy, environment.loop.now + longest)
            wait(nanoseconds)
            return false
        }
    }

    private func refuse(_ use: RateUse, _ refusal: RateReason) {
        reply(with: .rateLimited(RateExcess(rule: use.rule, refusal)), closing: false)
    }

    /// What a rule with a rate counts; `nil` for one without.
    private func use(of index: Int, _ rules: HostRules) -> RateUse? {
        let rule = rules.rules.rules[index]
        guard let limits = rule.rate, let peer else { return nil }
        let network = clientNetwork ?? IPNetwork(client: peer.address)
        let subject: RateKey.Subject =
            switch limits.basis {
            case .client: .client(network)
            case .user: identity.map { .user($0.user) } ?? .client(network)
            case .group:
                rule.groups.first { identity?.isMember(of: $0) ?? false }
                    .map { .group($0) } ?? .rule
            case .rule: .rule
            }
        let key = RateKey(rule: rule.name, subject: subject)
        let account = environment.shared.rates.account(
            key, of: network, at: environment.turnMicroseconds() * 1000)
        return RateUse(
            account, limits, rule: rule.name, rules.counts(of: index), client: network,
            time: environment.loop.time)
    }

    /// Has the content pass at the rate. That of a tunnel is paced by what relays it.
    private func pace(_ use: RateUse, _ next: Limiting.Step) {
        guard case .request = next, let client, limiting?.paced == nil else { return }
        guard let paced = PacedStream(client, of: self, by: use) else { return }
        limiting?.paced = paced
        self.client = paced
    }

    // MARK: Waiting

    private func wait(_ nanoseconds: Int64) {
        guard let wait = limiting?.wait else { return }
        let time = max(1, (nanoseconds + 999_999) / 1_000_000)
        let left = max(1, wait.end - environment.loop.now)
        environment.loop.setDeadline(self, after: min(time, left))
    }

    /// The time has passed after which it looks whose turn it is, or longer must not wait.
    func delayEnded() {
        guard let wait = limiting?.wait, let use = limiting?.use else { return }
        guard environment.loop.now >= wait.end else { return look(isTold: false) }
        tell(use.leave(report.id))
        use.gaveUp()
        limiting?.wait = nil
        let turns = use.advance()
        for turn in turns.ready { tell(turn, isReady: true) }
        guard goesOn(after: .turnCame) else { return }
        refuse(use, RateReason(.requests, retryAfter: turns.last))
    }

    /// Something has happened to those who wait.
    /// - Parameter isReady: whether it is this exchange's turn.
    func turnCame(_ ticket: UInt64, isReady: Bool) {
        guard report.id == ticket, case .delayed = state.step else { return }
        if isReady { proceedAfterDelay() } else { look(isTold: true) }
    }

    private func look(isTold: Bool) {
        guard let use = limiting?.use else { return }
        let turns = use.advance()
        var isReady = false
        for turn in turns.ready {
            if turn.ticket == report.id { isReady = true } else { tell(turn, isReady: true) }
        }
        if isReady { return proceedAfterDelay() }
        if !isTold { return wait(turns.last) }
        // Not later than it would have looked.
        let known = deadline == .max ? .max : max(0, deadline - environment.loop.now)
        wait(min(turns.first, known > .max / 1_000_000 ? .max : known * 1_000_000))
    }

    private func proceedAfterDelay() {
        guard let limiting, let use = limiting.use, let wait = limiting.wait else { return }
        environment.loop.setDeadline(self, after: nil)
        limiting.wait = nil
        use.admitted()
        guard goesOn(after: .turnCame) else { return }
        // No request is judged by half of each of two configurations: who asks, and whether they
        // may, is found out again.
        guard wait.policy === environment.policy else {
            guard let ingress, let peer else { return }
            guard environment.policy.configuration.access.serves(client: peer.address) else {
                return reply(with: .access(.clientNotAllowed), closing: true)
            }
            return route(at: ingress)
        }
        pace(use, wait.next)
        switch wait.next {
        case .request(let origin):
            compareOriginal(with: origin)
            goOn(to: origin)
        case .tunnel(let authority, let handling): openTunnel(to: authority, handling, wait.policy)
        }
    }

    /// The client has left while it waited.
    func abandonTurn() {
        guard let use = limiting?.use, limiting?.wait != nil else { return }
        limiting?.wait = nil
        tell(use.leave(report.id))
    }

    private func tell(_ turns: (ready: [RateTurn], looks: RateTurn?)) {
        for turn in turns.ready { tell(turn, isReady: true) }
        if let turn = turns.looks { tell(turn, isReady: false) }
    }

    private func tell(_ turn: RateTurn, isReady: Bool) {
        environment.shared.mailboxes[turn.worker].post(
            .turnCame(turn.token, ticket: turn.ticket, isReady: isReady))
    }

    // MARK: The end

    /// The exchange is over, or its client has left.
    /// - Parameter sent: the bytes of content that the client was sent, and sent.
    @inline(never)
    func leaveRates(sent: (down: UInt64, up: UInt64)) {
        guard let limiting else { return }
        self.limiting = nil
        limiting.paced?.close()
        if let use = limiting.use { tell(use.end()) }
        for use in limiting.reported {
            use.meter(.down, bytes: sent.down, since: report.began)
            use.meter(.up, bytes: sent.up, since: report.began)
            tell(use.end())
        }
    }

    // MARK: Content

    /// Whether the exchange has begun and not ended.
    var isUnderWay: Bool { if case .ended = state.step { false } else { true } }

    /// Has the bytes of a relay pass at the rate of the rule.
    func pace(_ relay: Relay) {
        guard let use = limiting?.use else { return }
        relay.pace(toClient: BytePace(use, .down), toUpstream: BytePace(use, .up)) { [self] in
            note(.rateLimited(RateExcess(rule: use.rule, $0)))
        }
    }
}
