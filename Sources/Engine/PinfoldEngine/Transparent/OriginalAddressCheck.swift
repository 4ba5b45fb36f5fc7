import EventLoop
import HTTPCore
import PinfoldResolver

/// Looks up a host's addresses to compare them with the one that its client connected to. Nothing
/// waits for it: what it finds is for the log and the metrics.
final class OriginalAddressCheck: EventHandler, LookupConsumer, EnvironmentPart {
    let environment: Environment
    private let original: OriginalDestination
    private let host: String
    private var isOver = false

    init(environment: Environment, original: OriginalDestination, host: String) {
        self.environment = environment
        self.original = original
        self.host = host
    }

    /// Looks up, unless the answer is known.
    /// - Parameter client: the client in whose share of the lookups it counts.
    func start(for client: IPNetwork?) {
        let resolver = environment.shared.resolver
        if let known = resolver.cached(
            name: host, nowMilliseconds: environment.loop.monotonicNow)
        {
            resolved(known)
            if isOver { return }
        }
        guard (try? environment.loop.add(self)) != nil else { return }
        environment.loop.setDeadline(
            self, after: environment.policy.timeouts.connectMilliseconds)
        let (token, mailbox) = (token, environment.mailbox)
        resolver.resolve(
            name: host, client: client, later: { mailbox.post(.resolvedLater(token, $0)) },
            completion: { mailbox.post(.resolved(token, $0)) })
    }

    override func deadlineReached() { close() }

    func resolved(_ result: ResolveResult) {
        switch result {
        case .resolved(let answer): arrived(answer)
        case .failed: close()
        }
    }

    func arrived(_ answer: ResolvedAnswer) {
        guard !isOver else { return }
        switch original.compare(answer.addresses, areAll: answer.isComplete, of: host) {
        case .unknown: return
        case .its: break
        case .foreign:
            environment.metrics.add(.transparentAddressesForeign)
            environment.trace(
                "the original address is not one of the host's",
                ["host": "\(host)", "original": "\(original.endpoint)"])
        }
        close()
    }

    func closeWithEnvironment() { close() }

    private func close() {
        isOver = true
        environment.loop.remove(self)
    }
}
