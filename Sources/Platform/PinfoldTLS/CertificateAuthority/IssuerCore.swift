import HTTPCore
import Locking

/// The state shared by an issuer's callers and its thread.
final class IssuerCore: Sendable {
    private struct KeptCertificate {
        let identity: TLSServerIdentity
        /// Seconds since 1970.
        let useBefore: Int64
    }

    private struct State {
        var kept: ShareTable<CertificateRequest.Key, KeptCertificate>
        /// What is queued or being signed, by the clients that have asked for it.
        var permits: PermitShares<IPNetwork>
        /// Who waits for what is queued or being signed.
        var waiters: [CertificateRequest.Key: [CertificateIssuer.Completion]] = [:]
        /// The queue, first in, first out, from `next` on.
        var queue: [CertificateRequest?] = []
        var next = 0
        var isClosed = false
        var statistics = IssuerStatistics()

        /// A cached certificate that is not too close to its end.
        mutating func use(_ key: CertificateRequest.Key, now: Int64) -> TLSServerIdentity? {
            guard let found = kept.use(key) else { return nil }
            guard now < found.useBefore else {
                kept.remove(key)
                return nil
            }
            statistics.hits += 1
            return found.identity
        }

        mutating func takeNext() -> CertificateRequest? {
            guard next < queue.count else { return nil }
            let request = queue[next]
            queue[next] = nil
            next += 1
            if next == queue.count {
                queue.removeAll(keepingCapacity: true)
                next = 0
            } else if next >= 1024, next * 2 > queue.count {
                queue.removeFirst(next)
                next = 0
            }
            return request
        }
    }

    let options: IssuerOptions
    private let monitor: Monitor<State>

    init(options: IssuerOptions) {
        self.options = options
        monitor = Monitor(
            State(
                kept: ShareTable(limit: max(1, options.maximumCertificates)),
                permits: PermitShares(permits: options.maximumWaiting)))
    }

    func cached(_ key: CertificateRequest.Key) -> TLSServerIdentity? {
        let now = options.clock()
        return monitor.withLock { $0.use(key, now: now) }
    }

    /// The result if it is known at once; otherwise `nil`, and `completion` will be called.
    func enter(
        _ request: CertificateRequest, _ completion: @escaping CertificateIssuer.Completion
    ) -> Result<TLSServerIdentity, IssuanceError>? {
        let now = options.clock()
        let key = request.key
        let (answer, isNew) = monitor.withLock {
            state -> (Result<TLSServerIdentity, IssuanceError>?, Bool) in
            if let identity = state.use(key, now: now) { return (.success(identity), false) }
            if state.isClosed {
                state.statistics.failures += 1
                return (.failure(.closed), false)
            }
            if state.waiters[key] != nil {
                state.waiters[key]?.append(completion)
                state.statistics.coalesced += 1
                return (nil, false)
            }
            guard state.permits.take(for: request.client) else {
                state.statistics.failures += 1
                return (.failure(.overloaded), false)
            }
            state.waiters[key] = [completion]
            state.queue.append(request)
            return (nil, true)
        }
        if isNew { monitor.signal() }
        return answer
    }

    /// Waits for the next request; `nil` if the issuer is closed.
    func take() -> CertificateRequest? {
        monitor.wait { state in
            if state.isClosed { return .done(nil) }
            guard let request = state.takeNext() else { return .signal }
            return .done(request)
        }
    }

    /// Caches an issued certificate, and completes everyone waiting for it.
    func finish(
        _ request: CertificateRequest, _ outcome: Result<IssuedCertificate, IssuanceError>,
        now: Int64
    ) {
        let key = request.key
        let waiters = monitor.withLock { state in
            let waiters = state.waiters.removeValue(forKey: key)
            if waiters != nil { state.permits.release(for: request.client) }
            switch outcome {
            case .success(let issued):
                // Half of the remaining time: a client that gets it late can still use it for a
                // while.
                let useBefore = now + (issued.validity.upperBound - now) / 2
                state.statistics.issued += 1
                state.kept.set(
                    KeptCertificate(identity: issued.identity, useBefore: useBefore), for: key,
                    of: request.client)
            case .failure:
                state.statistics.failures += waiters?.count ?? 0
            }
            return waiters ?? []
        }
        let answer = outcome.map(\.identity)
        for waiter in waiters { waiter(answer) }
    }

    func setLimit(_ limit: Int) { monitor.withLock { $0.kept.setLimit(max(1, limit)) } }

    func statistics() -> IssuerStatistics {
        monitor.withLock { state in
            var statistics = state.statistics
            statistics.kept = state.kept.count
            statistics.keptLimit = state.kept.limit
            statistics.waiting = state.waiters.count
            statistics.waitingLimit = options.maximumWaiting
            return statistics
        }
    }

    /// Completes all waiting requests with `closed`, and lets the thread end.
    func close() {
        let waiters = monitor.withLock { state in
            state.isClosed = true
            state.queue = []
            state.next = 0
            let waiters = state.waiters.values.flatMap { $0 }
            state.waiters = [:]
            state.permits.removeAll()
            state.statistics.failures += waiters.count
            return waiters
        }
        monitor.broadcast()
        for waiter in waiters { waiter(.failure(.closed)) }
    }
}
