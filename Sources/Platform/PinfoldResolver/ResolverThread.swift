import CLinux
import HTTPCore

/// The resolver's thread: hosts file, servers, and the lookups under way. Created by the thread
/// that starts it, and confined to its own from then on.
final class ResolverThread {
    /// A lookup whose questions have been sent.
    private struct Lookup {
        var number: UInt64
        var v4: FamilyOutcome?
        var v6: FamilyOutcome?
        /// The number of gaps when each family was last asked.
        var gapsBefore: (v4: Int, v6: Int)
        /// Whether one family's addresses have been handed out.
        var isPublished = false

        /// Whether a question that has timed out should be asked again, because the process did not
        /// run for part of that time: the server was not at fault.
        mutating func asksAgain(_ family: IPAddress.Family, gaps: Int) -> Bool {
            switch family {
            case .v4:
                defer { gapsBefore.v4 = gaps }
                return gapsBefore.v4 != gaps
            case .v6:
                defer { gapsBefore.v6 = gaps }
                return gapsBefore.v6 != gaps
            }
        }
    }

    /// When to stop waiting for a lookup's other family. All delays are equal, so the queue is
    /// ordered by deadline.
    private struct Delay {
        var name: DomainName
        var number: UInt64
        var deadlineMilliseconds: Int64
    }

    private let core: ResolverCore
    private let epoll: Int32
    private let queue = AnswerQueue()
    private var channels: [AresChannel] = []
    /// The channel in use; earlier ones stay in `channels` until their answers have arrived.
    private var asking: AresChannel
    private var failover: AresChannel
    private var nextChannelNumber: UInt32 = 2
    private var serversFile: WatchedFile?
    private var hostsFile: WatchedFile
    private var hosts = HostsTable()
    private var lookups: [DomainName: Lookup] = [:]
    private var nextLookupNumber: UInt64 = 0
    private var delays: [Delay] = []
    /// How often the process did not run for a while (SIGSTOP, a suspended machine), and when the
    /// last wait ended.
    private var gaps = 0
    private var lastTurn: Int64

    private static let maximumEvents = 64
    /// How far a turn may exceed its requested duration before it counts as a gap.
    private static let gapMilliseconds: Int64 = 1000

    init(core: ResolverCore) throws(Resolver.StartError) {
        self.core = core
        lastTurn = core.options.clock()
        let options = core.options
        let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw .system(errno: __errno_location().pointee) }
        self.epoll = epoll
        if case .file(let path) = options.servers {
            // Checked before c-ares reads it, so that a change in between is noticed next time
            // rather than missed.
            var file = WatchedFile(path: path)
            _ = file.hasChanged()
            serversFile = file
        }
        do throws(Resolver.StartError) {
            asking = try AresChannel(
                options: options, serverFailureHandling: .report, number: 0, epoll: epoll,
                queue: queue)
        } catch {
            CLinux.close(epoll)
            throw error
        }
        do throws(Resolver.StartError) {
            failover = try AresChannel(
                options: options, serverFailureHandling: .askNextServer, number: 1, epoll: epoll,
                queue: queue)
        } catch {
            asking.close()
            CLinux.close(epoll)
            throw error
        }
        channels = [asking, failover]
        hostsFile = WatchedFile(path: options.hostsPath)
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = .max
        epoll_ctl(epoll, EPOLL_CTL_ADD, core.wakeDescriptor, &event)
    }

    /// Works until the resolver is closed.
    func run() {
        while true {
            let work = core.takeWork()
            if work.isClosed { break }
            refreshHosts()
            if !work.names.isEmpty { refreshServers() }
            for name in work.names { begin(name) }
            settle()
            retireChannels()
            wait()
        }
        shutDown()
    }

    /// Releases what ``run()`` needs; for a thread that was never started.
    func shutDown() {
        for channel in channels { channel.close() }
        channels = []
        queue.answers = []
        core.cancelAll()
        CLinux.close(epoll)
    }

    // MARK: Lookups

    private func begin(_ name: DomainName) {
        let now = core.options.clock()
        if let addresses = hosts.addresses(of: name) {
            let expiresAt = now + LookupOutcome.milliseconds(core.options.maximumTTLSeconds)
            let answer = ResolvedAnswer(
                addresses: addresses, source: .hosts, isComplete: true,
                expiresAtMilliseconds: expiresAt)
            core.finish(name, .resolved(answer), expiresAt: expiresAt, now: now)
            return
        }
        let number = nextLookupNumber
        nextLookupNumber += 1
        lookups[name] = Lookup(number: number, gapsBefore: (gaps, gaps))
        core.addQueries(2)
        // AAAA first, as RFC 8305 §3 recommends.
        asking.ask(name, family: .v6, lookup: number)
        asking.ask(name, family: .v4, lookup: number)
    }

    /// Processes the answers that have arrived and the delays that are over.
    private func settle() {
        while !queue.answers.isEmpty {
            let answers = queue.answers
            queue.answers = []
            for answer in answers { settle(answer) }
        }
        let now = core.options.clock()
        while let delay = delays.first, delay.deadlineMilliseconds <= now {
            delays.removeFirst()
            publishPart(delay.name, number: delay.number, now: now)
        }
    }

    private func settle(_ answer: AnswerQueue.Answer) {
        let question = answer.question
        let outcome = answer.outcome
        guard var lookup = lookups[question.name], lookup.number == question.lookup else { return }
        if case .failed(let failure) = outcome, question.failure == nil,
            failure == .serverFailure || failure == .refused, asking.hasSeveralServers
        {
            core.addQueries(1)
            failover.ask(
                question.name, family: question.family, lookup: lookup.number, failure: outcome)
            return
        }
        if outcome == .failed(.timeout), lookup.asksAgain(question.family, gaps: gaps) {
            lookups[question.name] = lookup
            core.addQueries(1)
            asking.ask(question.name, family: question.family, lookup: lookup.number)
            return
        }
        switch question.family {
        case .v4: lookup.v4 = outcome
        case .v6: lookup.v6 = outcome
        }
        lookups[question.name] = lookup
        let now = core.options.clock()
        if let v4 = lookup.v4, let v6 = lookup.v6 {
            finish(question.name, v4: v4, v6: v6, now: now)
        } else if case .addresses = outcome {
            delays.append(
                Delay(
                    name: question.name, number: lookup.number,
                    deadlineMilliseconds: now + core.options.resolutionDelayMilliseconds))
        }
    }

    private func finish(_ name: DomainName, v4: FamilyOutcome, v6: FamilyOutcome, now: Int64) {
        lookups[name] = nil
        delays.removeAll { $0.name == name }
        let outcome = LookupOutcome(v4: v4, v6: v6, options: core.options)
        let expiresAt = now + LookupOutcome.milliseconds(outcome.ttlSeconds)
        switch outcome.result {
        case .success(let addresses):
            let answer = ResolvedAnswer(
                addresses: addresses, source: .dns, isComplete: true,
                expiresAtMilliseconds: expiresAt)
            core.finish(name, .resolved(answer), expiresAt: expiresAt, now: now)
        case .failure(let failure):
            core.finish(name, .failed(failure), expiresAt: expiresAt, now: now)
        }
    }

    private func publishPart(_ name: DomainName, number: UInt64, now: Int64) {
        guard let lookup = lookups[name], lookup.number == number, !lookup.isPublished,
            let part = lookup.v6 ?? lookup.v4,
            let outcome = LookupOutcome(part: part, options: core.options),
            case .success(let addresses) = outcome.result
        else { return }
        lookups[name]?.isPublished = true
        let answer = ResolvedAnswer(
            addresses: addresses, source: .dns, isComplete: false,
            expiresAtMilliseconds: now + LookupOutcome.milliseconds(outcome.ttlSeconds))
        core.publish(part: answer, of: name)
    }

    // MARK: Files and channels

    private func refreshHosts() {
        let changed = hostsFile.hasChanged()
        if changed { hosts = HostsTable(hostsFile.read(maximumBytes: HostsTable.maximumBytes)) }
        core.noteHosts(changed: changed, now: core.options.clock())
    }

    /// New servers need a new channel: c-ares cannot change a channel's servers while questions are
    /// out.
    private func refreshServers() {
        guard serversFile?.hasChanged() == true else { return }
        let options = core.options
        do throws(Resolver.StartError) {
            let first = try AresChannel(
                options: options, serverFailureHandling: .report, number: nextChannelNumber,
                epoll: epoll, queue: queue)
            channels.append(first)
            let second = try AresChannel(
                options: options, serverFailureHandling: .askNextServer,
                number: nextChannelNumber + 1,
                epoll: epoll, queue: queue)
            channels.append(second)
            (asking, failover) = (first, second)
            nextChannelNumber += 2
        } catch {
            // Out of memory or the like: the previous servers remain in use.
        }
    }

    private func retireChannels() {
        guard channels.count > 2 else { return }
        channels.removeAll { channel in
            guard channel !== asking, channel !== failover, channel.outstanding == 0 else {
                return false
            }
            channel.close()
            return true
        }
    }

    // MARK: Waiting

    private func wait() {
        var timeout: Int64?
        if let delay = delays.first {
            timeout = max(delay.deadlineMilliseconds - core.options.clock(), 0)
        }
        for channel in channels {
            guard let milliseconds = channel.timeoutMilliseconds() else { continue }
            timeout = min(timeout ?? milliseconds, milliseconds)
        }
        let limit = Int32(clamping: timeout ?? -1)
        withUnsafeTemporaryAllocation(
            of: epoll_event.self, capacity: ResolverThread.maximumEvents
        ) { events in
            var count = epoll_wait(
                epoll, events.baseAddress, Int32(ResolverThread.maximumEvents), limit)
            // Answers that arrived during a gap are processed before their time is found to be
            // over.
            if noteGap(waited: Int64(limit)), count <= 0 {
                count = epoll_wait(
                    epoll, events.baseAddress, Int32(ResolverThread.maximumEvents), 0)
            }
            // Interrupted by a signal: the loop runs again.
            guard count > 0 else { return }
            for event in events[..<Int(count)] { handle(event) }
        }
        for channel in channels where channel.outstanding > 0 { channel.processTimeouts() }
    }

    /// Whether the process did not run for a while since the last turn. During a wait without limit
    /// no question can time out.
    private func noteGap(waited limit: Int64) -> Bool {
        let now = core.options.clock()
        defer { lastTurn = now }
        guard limit >= 0, now - lastTurn > limit + ResolverThread.gapMilliseconds else {
            return false
        }
        gaps += 1
        return true
    }

    private func handle(_ event: epoll_event) {
        guard event.data.u64 != .max else {
            var counter: UInt64 = 0
            _ = read(core.wakeDescriptor, &counter, 8)
            return
        }
        let number = UInt32(truncatingIfNeeded: event.data.u64 >> 32)
        let descriptor = Int32(truncatingIfNeeded: event.data.u64)
        guard let channel = channels.first(where: { $0.number == number }) else { return }
        channel.process(
            descriptor: descriptor,
            readable: event.events & ~EPOLLOUT.rawValue != 0,
            writable: event.events & EPOLLOUT.rawValue != 0)
    }
}
