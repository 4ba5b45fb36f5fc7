import Clocks
import Locking
import Threads

/// Issues certificates for the hosts of intercepted tunnels, on a thread named "certificates", and
/// caches them for later clients.
///
/// Safe to use from any number of threads at once. The private keys of the certificates, one of
/// each kind, live as long as the process and are never written anywhere.
package final class CertificateIssuer: Sendable {
    /// Called exactly once, with no lock held: on the issuer's thread, or before `issue` returns if
    /// the result is already known. It must not block.
    package typealias Completion =
        @Sendable (Result<TLSServerIdentity, IssuanceError>) -> Void

    /// Why an issuer could not be started.
    package enum StartError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The system refused to start a thread, with this errno.
        case thread(errno: Int32)
        /// The library could not make a key; with its message.
        case key(String)

        package var description: String {
            switch self {
            case .thread(let code): "cannot start the issuer's thread (errno \(code))"
            case .key(let reason): "cannot make a key: \(reason)"
            }
        }
    }

    let core: IssuerCore
    private let thread: Locked<Thread?>

    /// Starts the issuer's thread.
    package init(options: IssuerOptions = IssuerOptions()) throws(StartError) {
        let keys: LeafKeys
        do {
            keys = try LeafKeys()
        } catch {
            throw .key(error.text)
        }
        let core = IssuerCore(options: options)
        self.core = core
        do {
            // Handed over to the thread, and used by nothing else after that.
            nonisolated(unsafe) let worker = IssuerThread(core: core, keys: keys)
            thread = Locked(try Thread(name: "certificates") { worker.run() })
        } catch {
            throw .thread(errno: error.code)
        }
    }

    deinit { close() }

    /// The cached identity for a request, or `nil` if there is none: then call
    /// ``issue(_:completion:)``. Takes one short critical section; never waits.
    package func cached(_ request: CertificateRequest) -> TLSServerIdentity? {
        core.cached(request.key)
    }

    /// Provides the identity for a request: the cached one, or a new one. Simultaneous requests for
    /// the same certificate share one signature.
    package func issue(_ request: CertificateRequest, completion: @escaping Completion) {
        if let answer = core.enter(request, completion) { completion(answer) }
    }

    /// Sets the maximum number of cached certificates.
    package func setMaximumCertificates(_ count: Int) { core.setLimit(count) }

    /// The counts so far.
    package func statistics() -> IssuerStatistics { core.statistics() }

    /// Ends the thread and waits for its end (unless called on it). Waiting requests fail with
    /// `closed`, as does every later one that is not in the cache. May be called again.
    package func close() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        core.close()
        thread.join()
    }
}

/// Options of an issuer.
package struct IssuerOptions: Sendable {
    /// The maximum number of cached certificates.
    package var maximumCertificates = 10_000
    /// The maximum number of names waiting for their certificate. Once half as many are waiting,
    /// each client is limited to a quarter of them.
    package var maximumWaiting = 1024
    /// Seconds since 1970.
    package var clock: @Sendable () -> Int64 = { Clock.wallSeconds() }

    package init() {}
}

/// Counts for metrics; all except the first four only grow.
package struct IssuerStatistics: Sendable, Hashable {
    /// Certificates in the cache, and how many there may be.
    package var kept = 0
    package var keptLimit = 0
    /// Names waiting for their certificate, and how many may wait.
    package var waiting = 0
    package var waitingLimit = 0
    /// Certificates issued.
    package var issued = 0
    /// Requests answered with a cached certificate.
    package var hits = 0
    /// Requests that shared a signature already requested by another.
    package var coalesced = 0
    /// Requests that failed.
    package var failures = 0

    /// All zero.
    package init() {}
}
