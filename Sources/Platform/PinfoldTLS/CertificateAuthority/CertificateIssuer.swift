import Clocks
import Locking
import Threads

/// Certificates for the hosts of intercepted tunnels, issued on a thread named "certificates" and
/// kept for the next client.
///
/// Used by any number of threads at once. The private keys of the certificates, one of each kind,
/// live as long as the process and are never written anywhere.
package final class CertificateIssuer: Sendable {
    /// Called exactly once, with no lock held: on the issuer's thread, or before `issue` returns
    /// when it is known already. It must not block.
    package typealias Completion =
        @Sendable (Result<TLSServerIdentity, IssuanceFailure>) -> Void

    /// Why an issuer did not start.
    package enum StartError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The system refused to start a thread, with this errno.
        case thread(errno: Int32)
        /// The library could not make a key, in its words.
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
            // Handed over to the thread, and nobody else's after that.
            nonisolated(unsafe) let worker = IssuerThread(core: core, keys: keys)
            thread = Locked(try Thread(name: "certificates") { worker.run() })
        } catch {
            throw .thread(errno: error.code)
        }
    }

    deinit { close() }

    /// The identity for a request if it is kept, else nil: then call ``issue(_:completion:)``. One
    /// short critical section; nothing is waited for.
    package func cached(_ request: CertificateRequest) -> TLSServerIdentity? {
        core.cached(request.key)
    }

    /// The identity for a request: the one that is kept, or a new one. Requests for the same at
    /// once share one signature.
    package func issue(_ request: CertificateRequest, completion: @escaping Completion) {
        if let answer = core.enter(request, completion) { completion(answer) }
    }

    /// Allows so many certificates to be kept from now on.
    package func setMaximumCertificates(_ count: Int) { core.setLimit(count) }

    /// What has been done so far.
    package func statistics() -> IssuerStatistics { core.statistics() }

    /// Ends the thread and waits for its end (not when called on it); what waits gets `closed`, and
    /// so does everything that is not kept after. May be called again.
    package func close() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        core.close()
        thread.join()
    }
}

/// How an issuer works.
package struct IssuerOptions: Sendable {
    /// Certificates that are kept at most.
    package var maximumCertificates = 10_000
    /// Names that may wait for their certificate; once half as many do, a quarter for each client.
    package var maximumWaiting = 1024
    /// Seconds since 1970.
    package var clock: @Sendable () -> Int64 = { Clock.coarseWallSeconds() }

    package init() {}
}

/// Counts for metrics; all but the first two grow only.
package struct IssuerStatistics: Sendable, Hashable {
    /// Certificates that are kept.
    package var kept = 0
    /// Names that are waiting for their certificate.
    package var waiting = 0
    /// Certificates issued.
    package var issued = 0
    /// Requests that were given a certificate that was kept.
    package var hits = 0
    /// Requests that shared the signature that another one waited for.
    package var coalesced = 0
    /// Requests that got no certificate.
    package var failures = 0
}
