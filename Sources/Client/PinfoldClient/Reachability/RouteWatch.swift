import EventLoop
import HTTPCore
import PinfoldResolver

/// What a monitor monitors.
enum ReachabilityTarget: Sendable, Hashable {
    case internet
    case address(IPAddress)
    case host(String)
}

/// Watches the kernel's routes and links on a runtime's loop, and reports what they mean for a
/// target: once at the beginning, then each change.
final class RouteWatch: EventHandler {
    private let source: RouteSource
    private let target: ReachabilityTarget
    private let number: UInt64
    private unowned let runtime: RuntimeLoop
    private let resolver: Resolver
    private let report: @Sendable (NetworkStatus) -> Void
    /// The host's addresses, or `nil` if its name has not been resolved yet.
    private var addresses: [IPAddress]?
    private var isLookingUp = false
    /// Whether the network changed while the name was being resolved.
    private var mustLookUpAgain = false
    private var reported: NetworkStatus?
    /// Whether the source has failed and is not watched until the deadline.
    private var isPaused = false
    private var lookupDelay = RouteWatch.shortestDelay

    /// The maximum number of a host's addresses that are checked; more are ignored.
    private static let maximumAddresses = 16
    /// The delay after a failed request to the kernel, in milliseconds, and after the first failed
    /// lookup; then it doubles each time up to the longest.
    private static let shortestDelay: Int64 = 1000
    private static let longestDelay: Int64 = 60_000

    init(
        _ target: ReachabilityTarget, _ source: RouteSource, number: UInt64,
        on runtime: RuntimeLoop, resolver: Resolver,
        report: @escaping @Sendable (NetworkStatus) -> Void
    ) {
        self.target = target
        self.source = source
        self.number = number
        self.runtime = runtime
        self.resolver = resolver
        self.report = report
    }

    /// Starts on the loop, and reports as soon as the status is known.
    func begin() throws(Errno) {
        try runtime.loop.add(self, descriptor: source.descriptor, trigger: .levelReadable)
        runtime.keep(self, of: source.descriptor, as: number)
        lookUp()
        evaluate()
    }

    override func ready(_ readiness: Readiness) {
        do throws(NetlinkError) {
            guard try source.takeChanges() else { return }
        } catch {
            // Otherwise the loop would report the failure again at once, forever.
            pause()
        }
        // With the known addresses, a lost route is noticed at once.
        evaluate()
        lookUp()
    }

    override func deadlineReached() {
        if isPaused {
            isPaused = false
            runtime.loop.remove(self)
            do throws(Errno) {
                try runtime.loop.add(
                    self, descriptor: source.descriptor, trigger: .levelReadable)
            } catch {
                return runtime.removeWatch(number)
            }
        }
        evaluate()
        lookUp()
    }

    private func pause() {
        guard !isPaused else { return }
        isPaused = true
        let loop = runtime.loop
        loop.remove(self, keepingOpen: source.descriptor)
        do throws(Errno) { try loop.add(self) } catch { return runtime.removeWatch(number) }
        loop.setDeadline(self, after: Self.shortestDelay)
    }

    // MARK: Status

    private func evaluate() {
        let status: NetworkStatus
        do throws(NetlinkError) {
            guard let found = try present() else { return }
            status = found
        } catch {
            // For example, no descriptor is left for the request: try again.
            return runtime.loop.setDeadline(self, after: Self.shortestDelay)
        }
        guard status != reported else { return }
        reported = status
        report(status)
    }

    /// Returns `nil` if nothing is known yet.
    private func present() throws(NetlinkError) -> NetworkStatus? {
        switch target {
        case .internet: return try source.statusOfInternet()
        case .address(let address): return try source.status(address)
        case .host:
            guard let addresses else { return nil }
            guard !addresses.isEmpty else { return .notReachable }
            var found: [NetworkStatus] = []
            for address in addresses { found.append(try source.status(address)) }
            return .best(of: found)
        }
    }

    // MARK: Name resolution

    private func lookUp() {
        guard case .host(let name) = target else { return }
        guard !isLookingUp else {
            mustLookUpAgain = true
            return
        }
        isLookingUp = true
        mustLookUpAgain = false
        let (post, number) = (runtime.post, number)
        resolver.resolve(name: name) { result in
            post(.work { ($0.watch(number) as? RouteWatch)?.lookedUp(result) })
        }
    }

    private func lookedUp(_ result: ResolveResult) {
        isLookingUp = false
        switch result {
        case .resolved(let answer):
            lookupDelay = Self.shortestDelay
            addresses = Array(answer.addresses.prefix(Self.maximumAddresses))
        case .failed(let failure):
            switch failure {
            case .nxdomain, .noData, .badName: addresses = []
            // These say nothing about the host, so the known addresses remain in use.
            case .timeout, .serverFailure, .refused, .unreachable, .badResponse, .overloaded,
                .clientLimit, .zoneLimit, .cancelled:
                addresses = addresses ?? []
            }
            if failure != .badName {
                runtime.loop.setDeadline(self, after: lookupDelay)
                lookupDelay = min(2 * lookupDelay, Self.longestDelay)
            }
        }
        evaluate()
        if mustLookUpAgain { lookUp() }
    }
}
