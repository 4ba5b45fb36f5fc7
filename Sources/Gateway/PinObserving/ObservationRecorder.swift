import Clocks
import HTTPCore
import PinObservation
import PinfoldEngine
import PinfoldTLS
import Trust

/// The work of the thread `pin-observer`.
final class ObservationRecorder {
    /// The pause between two writes, in milliseconds: what comes meanwhile is written together.
    private static let writeMilliseconds: Int64 = 1_000
    /// The pause between two looks for counts that wait, in milliseconds.
    private static let sweepMilliseconds: Int64 = 60_000
    /// The pause after the file could not be written, in milliseconds.
    private static let retryMilliseconds: Int64 = 60_000
    /// The most kinds of sightings of which the chains are kept.
    private static let knownLimit = 4_096
    /// The most hosts that are published.
    private static let publishedLimit = 200

    private let observer: PinObserver
    private let path: String
    private let onEvent: (ObservationEvent) -> Void
    private var file: ObservationFile?
    private var table = ObservationTable()
    /// What each kind of sighting shows, so that its chains are not built again.
    private var known: [UInt64: Kind] = [:]
    /// What is not in the file yet: of each host, the sightings.
    private var unwritten: [ObservedName: [(Sighting, IPNetwork?)]] = [:]
    private var gone: Set<ObservedName> = []
    private var hasFailed = false
    /// When to open the file again, and when to write and to look for counts next; milliseconds of
    /// the monotonic clock.
    private var nextOpening: Int64 = 0
    private var nextWrite: Int64 = 0
    private var nextSweep: Int64 = 0

    private struct Kind {
        var sighting: Sighting
        var client: IPNetwork?
    }

    init(
        _ observer: PinObserver, path: String, onEvent: @escaping (ObservationEvent) -> Void
    ) {
        self.observer = observer
        self.path = path
        self.onEvent = onEvent
    }

    func run() {
        nextSweep = Clock.monotonicMilliseconds() + Self.sweepMilliseconds
        openFile(Clock.monotonicMilliseconds())
        publish()
        var isEnding = false
        while !isEnding {
            let work = wait()
            isEnding = work.isEnding
            for item in work.inbox { note(item) }
            let now = Clock.monotonicMilliseconds()
            var counts = work.counts
            if isEnding {
                counts += observer.takeCounts(now: nil)
            } else if now >= nextSweep {
                counts += observer.takeCounts(now: now)
                nextSweep = now + Self.sweepMilliseconds
            }
            for count in counts { note(count) }
            if !unwritten.isEmpty || !gone.isEmpty { write(now, isLast: isEnding) }
            if !work.inbox.isEmpty || !counts.isEmpty { publish() }
            nextWrite = now + Self.writeMilliseconds
        }
    }

    private func wait() -> PinObserver.State {
        let (nextWrite, nextSweep) = (nextWrite, nextSweep)
        return observer.state.wait { state in
            let now = Clock.monotonicMilliseconds()
            let hasWork = !state.inbox.isEmpty || !state.counts.isEmpty
            guard state.isEnding || hasWork && now >= nextWrite || now >= nextSweep else {
                return .until((hasWork ? min(nextWrite, nextSweep) : nextSweep) * 1_000_000)
            }
            let work = state
            state.inbox = []
            state.counts = []
            return .done(work)
        }
    }

    // MARK: Noting

    private func note(_ item: PinObserver.Item) {
        let server = item.server
        var sighting: Sighting
        if let kind = known[item.key] {
            sighting = kind.sighting
        } else {
            // The policy may have been satisfied without a valid chain: then there is no key that
            // a pin could rely on.
            let paths = server.shown.context.validPaths(
                of: server.shown.certificates, most: ObservedChain.pathsLimit)
            guard let leaf = paths.first?.first else { return }
            sighting = Sighting(
                name: ObservedName(host: server.host, port: server.port),
                leaf: ObservedCertificate(leaf),
                paths: paths.map { $0.dropFirst().map { ObservedCertificate($0) } },
                address: server.endpoint?.address, isReported: server.isReported,
                time: server.wallSeconds)
            if known.count >= Self.knownLimit { known = [:] }
            known[item.key] = Kind(sighting: sighting, client: server.client)
        }
        sighting.time = server.wallSeconds
        sighting.count = item.count
        let before = table.entry(sighting.name)?.host.chains ?? []
        let novelty = note(sighting, for: server.client)
        guard case .newKey(let issuerIsKnown)? = novelty, !server.isPinned else { return }
        observer.published.withLock { published in
            if issuerIsKnown {
                published.statistics.newKeysOfKnownIssuers &+= 1
            } else {
                published.statistics.newKeysOfNewIssuers &+= 1
            }
        }
        var earlier: [SHA256Digest] = []
        for chain in before.reversed() where !earlier.contains(chain.leaf.key) {
            earlier.append(chain.leaf.key)
        }
        onEvent(
            .newKey(
                NewKey(
                    name: sighting.name, shown: server.shown, leaf: sighting.leaf,
                    address: server.endpoint.map { "\($0)" }, issuerIsKnown: issuerIsKnown,
                    earlierKeys: earlier, time: sighting.time)))
    }

    private func note(_ count: SightingCache.Count) {
        guard let kind = known[count.key] else { return }
        var sighting = kind.sighting
        sighting.time = Clock.wallSeconds()
        sighting.count = count.count
        _ = note(sighting, for: kind.client)
    }

    private func note(_ sighting: Sighting, for client: IPNetwork?) -> ObservedHost.Novelty? {
        let (novelty, forgotten) = table.note(sighting, for: client)
        gone.remove(sighting.name)
        unwritten[sighting.name, default: []].append((sighting, client))
        forget(forgotten)
        return novelty
    }

    private func forget(_ names: [ObservedName]) {
        for name in names {
            unwritten[name] = nil
            gone.insert(name)
        }
    }

    // MARK: The file

    /// Opens the file, and takes over what is in it.
    private func openFile(_ now: Int64) {
        do throws(ObservationFileError) {
            do throws(ObservationFileError) {
                try load()
            } catch {
                guard error.isDamage else { throw error }
                let aside = try ObservationFile.setAside(path)
                onEvent(.setAside(file: aside, detail: "\(error)"))
                try load()
            }
            if hasFailed { onEvent(.recovered) }
            hasFailed = false
        } catch {
            failed(error, now)
        }
    }

    private func load() throws(ObservationFileError) {
        let opened = try ObservationFile(creating: path)
        let (entries, unreadable) = try opened.hosts()
        if unreadable > 0 { onEvent(.unreadable(rows: unreadable)) }
        var complete: Set<ObservedName> = []
        for entry in entries {
            let whole = merged(entry)
            if whole.host == entry.host { complete.insert(entry.host.name) }
            gone.remove(entry.host.name)
            forget(table.keep(whole))
        }
        // What the file does not have is written again: it may be another one than before.
        for host in table.hosts where !complete.contains(host.name) {
            unwritten[host.name] = unwritten[host.name] ?? []
        }
        file = opened
    }

    /// What the file has of a host, with the sightings that are not in it yet, and what it has lost
    /// of those before.
    private func merged(_ entry: ObservationTable.Entry) -> ObservationTable.Entry {
        var entry = entry
        let name = entry.host.name
        for (sighting, _) in unwritten[name] ?? [] { entry.host.note(sighting) }
        if let known = table.entry(name) { entry.host.merge(known.host) }
        return entry
    }

    private func write(_ now: Int64, isLast: Bool) {
        if file == nil {
            guard now >= nextOpening || isLast else { return bound() }
            openFile(now)
        }
        guard let file else { return bound() }
        do throws(ObservationFileError) {
            do throws(ObservationFileError) {
                try commit(to: file)
            } catch {
                guard error.isLoss else { throw error }
                self.file = nil
                openFile(now)
                guard let other = self.file else { return bound() }
                try commit(to: other)
            }
        } catch {
            self.file = nil
            failed(error, now)
            bound()
        }
    }

    private func commit(to file: ObservationFile) throws(ObservationFileError) {
        let changed = unwritten.keys.compactMap { table.entry($0) }
        var others: [ObservationTable.Entry] = []
        try file.write(changed, removing: Array(gone)) { other in
            let entry = merged(other)
            others.append(entry)
            return entry
        }
        unwritten = [:]
        gone = []
        for other in others { forget(table.keep(other)) }
    }

    private func failed(_ error: ObservationFileError, _ now: Int64) {
        nextOpening = now + (error.isDamage ? 0 : Self.retryMilliseconds)
        if !hasFailed, !error.isDamage {
            onEvent(.unusable("\(error)"))
            hasFailed = true
        }
    }

    /// Without a file, the table is all there is; what would have been written is in it.
    private func bound() {
        let most = 64
        for (name, sightings) in unwritten where sightings.count > most {
            unwritten[name] = Array(sightings.suffix(most))
        }
    }

    // MARK: Publishing

    private func publish() {
        let summaries = table.hosts.map { ObservedSummary($0) }.sorted {
            ($0.newKeySeen ?? 0, $0.lastSeen) > ($1.newKeySeen ?? 0, $1.lastSeen)
        }
        let shown = Array(summaries.prefix(Self.publishedLimit))
        observer.published.withLock { published in
            published.statistics.hosts = table.count
            published.statistics.bytes = table.bytes
            published.statistics.forgotten = table.forgotten
            published.summaries = shown
        }
    }
}

extension ObservedCertificate {
    init(_ certificate: CertificateInspection) {
        self.init(
            key: certificate.identity.key, fingerprint: certificate.identity.fingerprint,
            subject: certificate.identity.subject, issuer: certificate.issuer,
            notAfter: certificate.notAfter)
    }
}
