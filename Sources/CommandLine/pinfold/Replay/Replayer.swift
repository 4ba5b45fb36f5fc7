import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS
import Trust

/// Judges the requests of logs under a configuration, and compares that with what another one says
/// or with what the log says.
struct Replayer {
    /// A configuration with what judges by it. A class, because the configuration is large, and
    /// would be copied for each line.
    fileprivate final class Side {
        let configuration: ConfigurationSnapshot
        let judge: RequestJudge
        let keys: ObservedKeysJudge

        init(_ configuration: ConfigurationSnapshot) throws(TLSContextError) {
            self.configuration = configuration
            judge = RequestJudge(
                try PolicySnapshot(forQueries: configuration, preparesTLS: false))
            keys = ObservedKeysJudge(configuration)
        }
    }

    private let new: Side
    /// `nil` to compare with the log.
    private let old: Side?
    private let observed: ObservedServers?
    private var interpreter: LogInterpreter
    private var line = LogLine()
    /// Whether two entries say the same of the cache.
    private var cachesAlike: [Pair: Bool] = [:]
    private(set) var summary: ReplaySummary

    private struct Pair: Hashable {
        let old: Int?
        let new: Int?
    }

    init(
        _ new: ConfigurationSnapshot, against old: ConfigurationSnapshot?,
        observed: ObservedServers?, examples: Int
    ) throws(TLSContextError) {
        self.new = try Side(new)
        if let old { self.old = try Side(old) } else { self.old = nil }
        self.observed = observed
        interpreter = LogInterpreter(
            [new] + (old.map { [$0] } ?? []), readsOutcomes: old == nil)
        summary = ReplaySummary(examples: examples)
    }

    /// Takes the next line.
    mutating func take(_ bytes: UnsafeRawBufferPointer) throws(TLSContextError) {
        summary.lines += 1
        let reading = line.read(bytes) ? interpreter.interpret(line) : .unreadable
        guard case .request(let logged) = reading else { return summary.skip(reading) }
        summary.judged += 1
        summary.note(time: logged.time.cut())
        let request = logged.request
        let verdict = new.judge.judge(request)
        var (before, after) = (logged.outcome, Standing(verdict))
        var isWithoutKeys = false
        if let old {
            let former = old.judge.judge(request)
            before = Standing(former)
            if former.needsAddress != verdict.needsAddress
                || verdict.needsAddress && !old.decidesDestinationsLike(new)
            {
                summary.withoutAddress += 1
            }
            try applyPins(&before, former, old, request, &isWithoutKeys)
            if !cacheAlike(former.entry, verdict.entry, old) {
                before.cache = old.judge.cacheUse(of: request, former)
                after.cache = new.judge.cacheUse(of: request, verdict)
            }
        } else {
            after.settle(verdict, by: logged.outcome)
        }
        try applyPins(&after, verdict, new, request, &isWithoutKeys)
        if before.refusal == ReasonKinds.ofPins, old == nil, isWithoutKeys || observed == nil {
            before.refusal = nil
        }
        if isWithoutKeys { summary.withoutKeys += 1 }
        let changes = ReplayChange.all(from: before, to: after)
        guard !changes.isEmpty else { return }
        summary.add(
            changes, host: verdict.host.isEmpty ? "none" : verdict.host,
            network: IPNetwork(client: request.client).clientDescription, user: request.user
        ) { [line] in
            ReplaySummary.Example(
                time: logged.time.cut(), client: String(request.client.clientText),
                user: request.user?.cut(), method: (line.text(.method) ?? "").cut(),
                target: (line.text(.target) ?? "").cut(), id: logged.id?.cut())
        }
    }

    // MARK: Pins

    /// Adds what pins make of the server, if it was seen.
    private func applyPins(
        _ standing: inout Standing, _ verdict: RequestVerdict, _ side: Side,
        _ request: PastRequest, _ isWithoutKeys: inout Bool
    ) throws(TLSContextError) {
        guard let observed, verdict.verifiesServer, let entry = verdict.entry,
            !side.configuration.hosts.entries[entry].pinsets.isEmpty
        else { return }
        guard
            let chains = observed.chains(
                of: verdict.host, port: verdict.port, at: request.seconds)
        else {
            isWithoutKeys = true
            return
        }
        standing.reportedPins = ""
        for chain in chains {
            let result = try side.keys.judge(
                chain, entry: entry, host: verdict.host, now: request.seconds)
            switch result {
            case .passes: continue
            case .unknown: isWithoutKeys = true
            case .reported(let error): standing.reportedPins = error.pinset ?? ""
            case .refused(let error):
                standing.refusal = Reason(error).token
                standing.by = error.pinset
                standing.handling = nil
                return
            }
        }
    }

    // MARK: The cache

    private mutating func cacheAlike(_ former: Int?, _ entry: Int?, _ old: Side) -> Bool {
        let pair = Pair(old: former, new: entry)
        if let known = cachesAlike[pair] { return known }
        let (one, other) = (old.configuration, new.configuration)
        let first = former.map { one.hosts.entries[$0] } ?? HostEntry()
        let second = entry.map { other.hosts.entries[$0] } ?? HostEntry()
        let isAlike =
            one.cache.isEnabled == other.cache.isEnabled && first.cache == second.cache
            && first.paths == second.paths
            && first.request.forwardsUser == second.request.forwardsUser
        cachesAlike[pair] = isAlike
        return isAlike
    }
}

extension Replayer.Side {
    /// Whether addresses are allowed and denied alike.
    fileprivate func decidesDestinationsLike(_ other: Replayer.Side) -> Bool {
        configuration.access.allow == other.configuration.access.allow
            && configuration.access.deny == other.configuration.access.deny
    }
}
