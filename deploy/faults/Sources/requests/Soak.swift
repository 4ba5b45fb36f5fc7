import Glibc
import PinfoldClient
import Synchronization

/// Makes the calls, in rounds after which nothing must be left of them.
struct Soak: Sendable {
    let around: Surroundings
    let folder: Folder
    let seed: UInt64
    /// So many calls at a time.
    let width: Int
    /// The only fault, or `nil` for all.
    let fault: String?
    let tally = Tally()
    let flight = InFlight()

    /// The greatest difference of the memory after the first rounds and at the end, in percent.
    static let growthPercent = 10
    /// Fewer calls say nothing about memory.
    static let fewestForMemory = 500_000

    func run(_ count: Int, rounds: Int, only: Int?) async throws {
        // The threads of Swift's tasks, and what the library loads once.
        let first = Resources.now()
        flight.watch()
        let runtime = try ClientRuntime(name: "soak-lasting")
        let lasting = try around.session(runtime)
        var samples: [Resources] = []
        let clock = ContinuousClock()
        let begun = clock.now
        for number in 0..<rounds {
            let calls = (number * count / rounds)..<((number + 1) * count / rounds)
            try await round(only.map { $0..<($0 + 1) } ?? calls, lasting)
            await settle(samples.first, lasting)
            let now = Resources.now()
            samples.append(now)
            if let before = samples.first { compare(now, before, "round \(number + 1)") }
            print(
                "round \(number + 1): \(tally.total) calls in \((clock.now - begun).seconds) s, "
                    + "\(now.descriptors) descriptors, \(now.threads.count) threads, "
                    + "\(now.residentKiB / 1024) MiB resident, "
                    + "\(now.allocatedKiB) KiB allocated, \(tally.problemCount) problems")
            fflush(nil)
        }
        let counts = lasting.watch.counts
        let calls = lasting.calls.load(ordering: .relaxed)
        if counts.ended != calls || counts.open != 0 {
            tally.problem("the lasting session: \(calls) calls, and of tasks \(counts)")
        }
        lasting.session.invalidate()
        if await !eventually({ lasting.watch.counts.isOver }) {
            tally.problem("the lasting session does not end")
        }
        runtime.close()
        compareAtEnd(samples, first)
        let (violations, violationCount) = around.ledger.violations
        for violation in violations { tally.problem(violation) }
        if violationCount > violations.count { tally.problem("\(violationCount) such in all") }
    }

    // MARK: Rounds

    private func round(_ calls: Range<Int>, _ lasting: WatchedSession) async throws {
        let runtime = try ClientRuntime(name: "soak-round")
        var references: [Weak] = []
        do {
            let sessions = try Sessions(around, runtime, lasting: lasting)
            await make(calls, sessions)
            for problem in await sessions.end() { tally.problem(problem) }
            references = sessions.references
        }
        runtime.close()
        try await closing()
        for reference in references {
            let isReleased = await eventually { reference.session == nil }
            if !isReleased { tally.problem("the session \(reference.name) is not released") }
        }
    }

    private func make(_ calls: Range<Int>, _ sessions: Sessions) async {
        let count = Count()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<width {
                group.addTask {
                    while true {
                        let number = calls.lowerBound + count.next() - 1
                        guard number < calls.upperBound else { return }
                        let plan = Plan(
                            number: number, seed: seed, servers: around.servers.count,
                            only: fault)
                        await make(plan, sessions)
                    }
                }
            }
        }
    }

    private func make(_ plan: Plan, _ sessions: Sessions) async {
        // Half a minute after its timeouts.
        flight.begin(plan, plan.fault.timeout == nil ? 90 : 31)
        defer { flight.end(plan) }
        do {
            let session = try sessions.session(plan)
            let (begun, standstills) = (ContinuousClock().now, flight.standstills)
            let end = await Call(plan: plan, around: around, folder: folder).end(session.session)
            let took = ContinuousClock().now - begun
            var isExcused = false
            if !plan.expected.contains(end.kind) {
                isExcused = await flight.hasStoodStill(since: standstills)
            }
            tally.add(plan, end.kind, "after \(took) \(end.text)", isExcused: isExcused)
        } catch {
            tally.problem("\(plan.text): \(error)")
        }
    }

    /// A runtime that is closed while its requests run: all of them end.
    private func closing() async throws {
        let runtime = try ClientRuntime(name: "soak-closing")
        let session = try around.session(runtime)
        let paths = ["slow-head", "slow-body", "whole", "dripping"]
        let kinds = try await withThrowingTaskGroup(of: Kind.self) { group in
            for number in 0..<20 {
                let role: Role = number % 2 == 0 ? .plain : .h2
                let url = around.servers[0].url(role, paths[number % paths.count] + "/\(number)")
                let request = try HTTPRequest(.get, url)
                group.addTask {
                    session.calls.add(1, ordering: .relaxed)
                    do throws(ClientError) {
                        return .status(
                            try await session.session.data(for: request).head.status.code)
                    } catch {
                        return .failed(error.reason)
                    }
                }
            }
            try await Task.sleep(for: .milliseconds(20))
            runtime.close()
            return try await group.reduce(into: [Kind]()) { $0.append($1) }
        }
        for kind in kinds where kind != .status(200) && kind != .invalidated {
            tally.problem("a request of a runtime that is closed: \(kind)")
        }
        if await !eventually({ session.watch.counts.open == 0 && session.watch.counts.isOver }) {
            tally.problem("the session of a closed runtime: \(session.watch.counts)")
        }
    }

    // MARK: What is left

    /// Waits until idle connections have been closed.
    private func settle(_ before: Resources?, _ lasting: WatchedSession) async {
        if await !eventually({ Witness.count <= Self.lastingWitnesses }) {
            tally.problem("\(Witness.count) objects of calls are not released")
        }
        if await !eventually({ lasting.watch.counts.open == 0 && lasting.session.tasks.isEmpty }) {
            tally.problem("the lasting session has tasks: \(lasting.watch.counts)")
        }
        guard let before else {
            // As long as idle connections live, and more.
            try? await Task.sleep(for: .seconds(2))
            return
        }
        _ = await eventually { Resources.now().descriptors <= before.descriptors }
    }

    /// The monitor of the lasting session.
    private static let lastingWitnesses = 1

    private func compare(_ now: Resources, _ before: Resources, _ what: String) {
        if now.descriptors > before.descriptors {
            tally.problem(
                "\(what): \(now.descriptors) descriptors, \(now.sockets) of them sockets, instead "
                    + "of \(before.descriptors) and \(before.sockets)")
        }
        if now.threads.contains("soak-round") || now.threads.contains("soak-closing") {
            tally.problem("\(what): threads of closed runtimes: \(now.threads)")
        }
        if folder.files != 1 { tally.problem("\(what): \(folder.files) files instead of 1") }
    }

    private func compareAtEnd(_ samples: [Resources], _ first: Resources) {
        let now = Resources.now()
        // The file with random bytes, and what Swift's tasks wait on.
        if now.sockets > first.sockets {
            tally.problem("the end: \(now.sockets) sockets instead of \(first.sockets)")
        }
        let left = now.threads.filter { name in
            name.hasPrefix("soak-") || name.hasPrefix("pinfold-") || name == "resolver"
        }
        if !left.isEmpty { tally.problem("the end: threads \(left)") }
        print(
            "the end: \(now.descriptors) descriptors (\(first.descriptors) at first), "
                + "\(now.threads.count) threads (\(first.threads.count)): "
                + now.threads.joined(separator: " "))
        // The first tenth fills what is filled once.
        guard let last = samples.last,
            let early = samples.dropFirst(max(0, samples.count / 10 - 1)).first
        else { return }
        let grown = (last.residentKiB - early.residentKiB) * 100 / early.residentKiB
        print("memory: \(early.residentKiB) KiB early, \(last.residentKiB) KiB late: \(grown) %")
        if grown >= Self.growthPercent, tally.total >= Self.fewestForMemory {
            tally.problem("memory has grown by \(grown) %")
        }
    }
}

extension Duration {
    var seconds: Int64 { components.seconds }
}
