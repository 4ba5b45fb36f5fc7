import Clocks
import HTTPCore
import Locking
import PinfoldConfiguration
import PinfoldResolver

extension ResolverOptions {
    /// The options for a configuration.
    package init(_ configuration: ResolverConfiguration) {
        self.init()
        switch configuration.servers {
        case .system: servers = .system
        case .list(let list): servers = .list(list)
        }
        minimumTTLSeconds = configuration.minimumTTLSeconds
        maximumTTLSeconds = configuration.maximumTTLSeconds
    }
}

/// A lookup as the gateway makes it for a request, with a resolver of its own. It blocks.
package enum NameLookup {
    /// The addresses of a host in the gateway's order, or the error that the gateway would reply
    /// with.
    ///
    /// - Parameters:
    ///   - host: a name, or an address without brackets.
    ///   - milliseconds: how long it may take; after that it counts as a timeout of the name
    ///     servers.
    package static func addresses(
        of host: String, _ configuration: ResolverConfiguration, milliseconds: Int64
    ) throws(Resolver.StartError) -> Result<[IPAddress], ExchangeError> {
        let resolver = try Resolver(options: ResolverOptions(configuration))
        defer { resolver.close() }
        let latest = Monitor<ResolveResult?>(nil)
        let complete: @Sendable (ResolveResult) -> Void = { result in
            latest.withLock { $0 = result }
            latest.signal()
        }
        resolver.resolve(
            name: host, later: { complete(.resolved($0)) }, completion: complete)
        let end = Clock.monotonicMicroseconds() * 1000 + milliseconds * 1_000_000
        let result: ResolveResult = latest.wait { result in
            switch result {
            case .failed(let failure): return .done(.failed(failure))
            case .resolved(let answer) where answer.isComplete: return .done(.resolved(answer))
            case .resolved, nil: break
            }
            guard Clock.monotonicMicroseconds() * 1000 >= end else { return .until(end) }
            return .done(result ?? .failed(.timeout))
        }
        switch result {
        case .resolved(let answer): return .success(answer.addresses)
        case .failed(let failure): return .failure(.nameNotResolved(failure))
        }
    }
}
