import CLinux
import HTTPCore
import PinfoldResolver
import Testing

@Suite("Racing addresses (RFC 8305)")
struct HappyEyeballsTests {
    private typealias Action = HappyEyeballs.Action

    private static let a6 = IPAddress.v6(0x2001_0db8_0000_0000, 1)
    private static let b6 = IPAddress.v6(0x2001_0db8_0000_0000, 2)
    private static let c6 = IPAddress.v6(0x2001_0db8_0000_0000, 3)
    private static let a4 = IPAddress.v4(0x0102_0301)
    private static let b4 = IPAddress.v4(0x0102_0302)
    private static let c4 = IPAddress.v4(0x0102_0303)

    private func connect(_ address: IPAddress, _ index: Int) -> Action {
        .connect(Endpoint(address: address, port: 443), index: index)
    }

    private func attempt(_ index: Int, _ address: IPAddress, _ errno: Int32) -> Action {
        .fail(
            .attempt(index: index, endpoint: Endpoint(address: address, port: 443), errno: errno))
    }

    /// Passes an event to the plan and expects these actions.
    private func expect(
        _ plan: inout HappyEyeballs, _ event: HappyEyeballs.Event, _ expected: [Action],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let actions = plan.handle(event)
        #expect(actions == expected, sourceLocation: sourceLocation)
    }

    /// A plan that has received these answers at time 0.
    private func plan(
        _ addresses: [IPAddress], isComplete: Bool = true,
        options: HappyEyeballs.Options = HappyEyeballs.Options()
    ) -> (HappyEyeballs, [Action]) {
        var plan = HappyEyeballs(port: 443, options: options)
        let actions = plan.handle(
            .answersArrived(addresses, isComplete: isComplete, nowMilliseconds: 0))
        return (plan, actions)
    }

    /// The order in which a plan tries its addresses if each fails at once.
    private func order(
        _ addresses: [IPAddress], options: HappyEyeballs.Options = HappyEyeballs.Options()
    ) -> [IPAddress] {
        var (plan, actions) = plan(addresses, options: options)
        var order: [IPAddress] = []
        while let action = actions.first, case .connect(let endpoint, let index) = action {
            order.append(endpoint.address)
            actions = plan.handle(
                .attemptFailed(index, errno: ECONNREFUSED, nowMilliseconds: 0))
        }
        return order
    }

    @Test
    func `the first attempt is IPv6, then the families alternate, then what is left follows`() {
        let (a6, b6, c6, a4, b4) = (Self.a6, Self.b6, Self.c6, Self.a4, Self.b4)
        #expect(order([a4, b4, a6, b6, c6]) == [a6, a4, b6, b4, c6])
        #expect(order([a6, b6, c6, a4]) == [a6, a4, b6, c6])
        #expect(order([a4, b4]) == [a4, b4])
        #expect(order([a6, b6]) == [a6, b6])
        #expect(order([a6]) == [a6])
        #expect(order([]) == [])
    }

    @Test func `the first family and how many of it come first are options`() {
        let (a6, b6, c6, a4, b4) = (Self.a6, Self.b6, Self.c6, Self.a4, Self.b4)
        var options = HappyEyeballs.Options()
        options.firstFamilyCount = 2
        #expect(order([a4, b4, a6, b6, c6], options: options) == [a6, b6, a4, c6, b4])
        options.firstFamily = .v4
        options.firstFamilyCount = 1
        #expect(order([a4, b4, a6, b6], options: options) == [a4, a6, b4, b6])
    }

    @Test func `an address is tried once, however often it is in the answers`() {
        #expect(order([Self.a4, Self.a4, Self.a6, Self.a4, Self.a6]) == [Self.a6, Self.a4])
    }

    @Test func `at most the given number of addresses is tried`() {
        var options = HappyEyeballs.Options()
        options.maximumAttempts = 3
        let all = [Self.a6, Self.b6, Self.c6]
        #expect(order(all, options: options) == all)
        #expect(order(all + [Self.a4], options: options) == all)
        var (plan, _) = plan([Self.a4, Self.b4], isComplete: false, options: options)
        _ = plan.handle(
            .answersArrived([Self.a6, Self.b6], isComplete: true, nowMilliseconds: 1))
        _ = plan.handle(.attemptFailed(0, errno: ECONNREFUSED, nowMilliseconds: 1))
        _ = plan.handle(.attemptFailed(1, errno: ECONNREFUSED, nowMilliseconds: 1))
        expect(
            &plan, .attemptFailed(2, errno: ECONNREFUSED, nowMilliseconds: 1),
            [attempt(2, Self.b4, ECONNREFUSED)])
    }

    @Test func `a second attempt starts beside the first when its delay is over, not before`() {
        var (plan, actions) = plan([Self.a6, Self.a4])
        #expect(actions == [connect(Self.a6, 0), .setTimer(milliseconds: 250)])
        actions = plan.handle(.timerFired(nowMilliseconds: 249))
        #expect(actions == [.setTimer(milliseconds: 1)])
        actions = plan.handle(.timerFired(nowMilliseconds: 250))
        #expect(actions == [connect(Self.a4, 1)])
        expect(&plan, .timerFired(nowMilliseconds: 500), [])
        #expect(plan.attempts.map(\.address) == [Self.a6, Self.a4])
    }

    @Test func `a failed attempt starts the next at once, with its own delay`() {
        var (plan, _) = plan([Self.a6, Self.a4, Self.b6])
        var actions = plan.handle(.attemptFailed(0, errno: ENETUNREACH, nowMilliseconds: 100))
        #expect(actions == [connect(Self.a4, 1), .setTimer(milliseconds: 250)])
        // The first attempt's timer, if it still fires, is early for the second.
        actions = plan.handle(.timerFired(nowMilliseconds: 250))
        #expect(actions == [.setTimer(milliseconds: 100)])
        actions = plan.handle(.timerFired(nowMilliseconds: 350))
        #expect(actions == [connect(Self.b6, 2)])
    }

    @Test func `the first connection wins and the others are closed; a late one is discarded`() {
        var (plan, _) = plan([Self.a6, Self.a4, Self.b6])
        _ = plan.handle(.timerFired(nowMilliseconds: 250))
        expect(&plan, .attemptConnected(1), [.use(index: 1), .cancelOthers(winner: 1)])
        expect(&plan, .attemptConnected(0), [.discard(index: 0)])
        expect(&plan, .attemptConnected(1), [])
        expect(&plan, .attemptFailed(0, errno: ETIMEDOUT, nowMilliseconds: 300), [])
        expect(&plan, .timerFired(nowMilliseconds: 900), [])
        expect(&plan, .answersArrived([Self.c4], isComplete: true, nowMilliseconds: 900), [])
        expect(&plan, .cancelled, [])
    }

    @Test func `when all attempts have failed the plan fails with the last error`() {
        var (plan, _) = plan([Self.a6, Self.a4])
        _ = plan.handle(.timerFired(nowMilliseconds: 250))
        expect(&plan, .attemptFailed(1, errno: ECONNREFUSED, nowMilliseconds: 300), [])
        expect(
            &plan, .attemptFailed(0, errno: ETIMEDOUT, nowMilliseconds: 400),
            [attempt(0, Self.a6, ETIMEDOUT)])
        expect(&plan, .attemptConnected(1), [.discard(index: 1)])
        expect(&plan, .cancelled, [])
        expect(&plan, .timerFired(nowMilliseconds: 900), [])
        expect(&plan, .answersArrived([Self.c4], isComplete: true, nowMilliseconds: 900), [])
        expect(&plan, .attemptFailed(0, errno: ETIMEDOUT, nowMilliseconds: 900), [])
    }

    @Test(arguments: [ENETUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT])
    func `a missing route does not hide what a peer answered`(local: Int32) {
        var (plan, _) = plan([Self.a6, Self.a4, Self.b6])
        _ = plan.handle(.attemptFailed(0, errno: local, nowMilliseconds: 0))
        _ = plan.handle(.attemptFailed(1, errno: ECONNREFUSED, nowMilliseconds: 0))
        expect(
            &plan, .attemptFailed(2, errno: local, nowMilliseconds: 0),
            [attempt(1, Self.a4, ECONNREFUSED)])
        (plan, _) = self.plan([Self.a6])
        expect(
            &plan, .attemptFailed(0, errno: local, nowMilliseconds: 0), [attempt(0, Self.a6, local)]
        )
    }

    @Test func `without any address the plan fails at the last answer, not before`() {
        var (plan, actions) = plan([], isComplete: false)
        #expect(actions == [])
        actions = plan.handle(.answersArrived([], isComplete: true, nowMilliseconds: 5))
        #expect(actions == [.fail(.noAddress)])
        #expect(self.plan([]).1 == [.fail(.noAddress)])
    }

    @Test func `after all failed, answers still to come are waited for and then tried at once`() {
        var (plan, _) = plan([Self.a4], isComplete: false)
        expect(&plan, .attemptFailed(0, errno: ECONNREFUSED, nowMilliseconds: 10), [])
        expect(&plan, .timerFired(nowMilliseconds: 300), [])
        expect(&plan, .attemptConnected(0), [])
        expect(&plan, .attemptFailed(0, errno: ECONNREFUSED, nowMilliseconds: 310), [])
        let answer = HappyEyeballs.Event.answersArrived(
            [Self.a6, Self.a4], isComplete: true, nowMilliseconds: 400)
        expect(&plan, answer, [connect(Self.a6, 1)])
        expect(
            &plan, .attemptFailed(1, errno: ENETUNREACH, nowMilliseconds: 401),
            [attempt(0, Self.a4, ECONNREFUSED)])
        (plan, _) = self.plan([Self.a4], isComplete: false)
        _ = plan.handle(.attemptFailed(0, errno: ECONNREFUSED, nowMilliseconds: 10))
        expect(
            &plan, .answersArrived([], isComplete: true, nowMilliseconds: 20),
            [attempt(0, Self.a4, ECONNREFUSED)])
    }

    @Test
    func `late answers beside a running attempt wait for its delay, or start if that is over`() {
        var (plan, actions) = plan([Self.a4], isComplete: false)
        #expect(actions == [connect(Self.a4, 0)])
        actions = plan.handle(
            .answersArrived([Self.a6, Self.b4], isComplete: true, nowMilliseconds: 100))
        #expect(actions == [.setTimer(milliseconds: 150)])
        actions = plan.handle(.timerFired(nowMilliseconds: 250))
        #expect(actions == [connect(Self.a6, 1), .setTimer(milliseconds: 250)])

        (plan, _) = self.plan([Self.a4], isComplete: false)
        actions = plan.handle(.answersArrived([Self.a6], isComplete: true, nowMilliseconds: 250))
        #expect(actions == [connect(Self.a6, 1)])
    }

    @Test func `late answers join the candidates still waiting, and the family's turn is kept`() {
        var (plan, _) = plan([Self.a4, Self.b4], isComplete: false)
        let answer = HappyEyeballs.Event.answersArrived(
            [Self.a6], isComplete: true, nowMilliseconds: 50)
        expect(&plan, answer, [])
        expect(
            &plan, .timerFired(nowMilliseconds: 250),
            [connect(Self.a6, 1), .setTimer(milliseconds: 250)])
        expect(&plan, .timerFired(nowMilliseconds: 500), [connect(Self.b4, 2)])
    }

    @Test func `an empty late answer ends the wait for more, not the race`() {
        var (plan, _) = plan([Self.a4], isComplete: false)
        expect(&plan, .answersArrived([], isComplete: true, nowMilliseconds: 60), [])
        expect(
            &plan, .attemptFailed(0, errno: ECONNREFUSED, nowMilliseconds: 70),
            [attempt(0, Self.a4, ECONNREFUSED)])
    }

    @Test func `cancelled, everything is closed and nothing more is started`() {
        var (plan, _) = plan([Self.a6, Self.a4])
        expect(&plan, .cancelled, [.cancelAll])
        expect(&plan, .timerFired(nowMilliseconds: 250), [])
        expect(&plan, .attemptFailed(0, errno: ETIMEDOUT, nowMilliseconds: 1), [])
        expect(&plan, .attemptConnected(0), [.discard(index: 0)])
        expect(&plan, .answersArrived([Self.b4], isComplete: true, nowMilliseconds: 2), [])
        expect(&plan, .cancelled, [])
        var waiting = HappyEyeballs(port: 443)
        expect(&waiting, .cancelled, [.cancelAll])
    }

    @Test func `an outcome of an attempt that never was changes nothing`() {
        var (plan, _) = plan([Self.a6, Self.a4])
        expect(&plan, .attemptFailed(7, errno: ETIMEDOUT, nowMilliseconds: 0), [])
        expect(&plan, .attemptFailed(-1, errno: ETIMEDOUT, nowMilliseconds: 0), [])
        expect(&plan, .timerFired(nowMilliseconds: 250), [connect(Self.a4, 1)])
    }

    @Test func `in whatever order things happen, every address is tried once, with one end`() {
        var seed: UInt64 = 7
        func random(_ bound: Int) -> Int {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(seed >> 33) % bound
        }
        let all = [Self.a6, Self.b6, Self.c6, Self.a4, Self.b4, Self.c4]
        for walk in 0..<2000 {
            var plan = HappyEyeballs(port: 443)
            var open: Set<Int> = []
            var tried: [IPAddress] = []
            var timer: Int64?
            var now: Int64 = 0
            var hasEnded = false
            var rest = all.shuffledBy(random)
            var isComplete = false
            while !hasEnded {
                var event = HappyEyeballs.Event.timerFired(nowMilliseconds: now)
                let choice = random(4)
                if choice == 0 && !isComplete || open.isEmpty && timer == nil {
                    let count = min(rest.count, random(4))
                    isComplete = count == rest.count
                    event = .answersArrived(
                        Array(rest.prefix(count)), isComplete: isComplete, nowMilliseconds: now)
                    rest.removeFirst(count)
                } else if choice <= 2, let index = open.min() {
                    open.remove(index)
                    event = .attemptFailed(index, errno: ECONNREFUSED, nowMilliseconds: now)
                    if random(30) == 0 { event = .attemptConnected(index) }
                } else if let due = timer {
                    now = max(now, due)
                    timer = nil
                    event = .timerFired(nowMilliseconds: now)
                } else {
                    continue
                }
                for action in plan.handle(event) {
                    switch action {
                    case .connect(let endpoint, let index):
                        #expect(!tried.contains(endpoint.address), "walk \(walk)")
                        tried.append(endpoint.address)
                        open.insert(index)
                    case .setTimer(let milliseconds):
                        #expect(milliseconds > 0)
                        timer = now + milliseconds
                    case .use, .cancelOthers:
                        hasEnded = true
                    case .fail:
                        #expect(open.isEmpty && isComplete && tried.count == all.count)
                        hasEnded = true
                    case .cancelAll, .discard:
                        Issue.record("walk \(walk): \(action)")
                    }
                }
            }
        }
    }
}

extension Array {
    fileprivate func shuffledBy(_ random: (Int) -> Int) -> Array {
        var result = self
        for index in result.indices.dropFirst() {
            result.swapAt(index, random(index + 1))
        }
        return result
    }
}
