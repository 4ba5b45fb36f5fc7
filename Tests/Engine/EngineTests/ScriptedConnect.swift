import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldResolver
import Testing

@testable import PinfoldEngine

/// An operation in progress, and the results it was called back with.
final class ScriptedConnect {
    private(set) var operation: ConnectOperation!
    private(set) var outcomes: [Result<Endpoint, ExchangeError>] = []
    /// The descriptor of the established connection.
    private(set) var descriptor: Int32?

    /// - Parameter isChecked: whether the destination is checked against the `access` rules.
    init(
        _ still: StillEngine, _ host: String, _ port: UInt16, isChecked: Bool = false,
        timeoutMilliseconds: Int64 = 60_000
    ) {
        operation = ConnectOperation(
            environment: still.environment, host: host, port: port, client: nil,
            rules: isChecked ? still.environment.policy.destinationRules : nil,
            hostMatch: DestinationRules.HostMatch()
        ) { [unowned self] result in
            if case .success(let made) = result { descriptor = made.transport.descriptor }
            outcomes.append(result.map(\.endpoint).mapError(\.error))
        }
        operation.start(timeoutMilliseconds: timeoutMilliseconds)
    }

    deinit {
        operation.cancel()
        if let descriptor { Descriptors.close(descriptor) }
    }

    var endpoints: [Endpoint] { outcomes.compactMap { try? $0.get() } }
    var failures: [Reason] {
        outcomes.compactMap {
            if case .failure(let fault) = $0 { fault.reason } else { nil }
        }
    }

    /// A lookup's answer arrives.
    func resolve(_ addresses: [String], isComplete: Bool = true) throws {
        operation.resolved(.resolved(try Self.answer(addresses, isComplete: isComplete)))
    }

    /// The rest of an answer arrives.
    func resolveMore(_ addresses: [String], isComplete: Bool = true) throws {
        operation.arrived(try Self.answer(addresses, isComplete: isComplete))
    }

    private static func answer(_ addresses: [String], isComplete: Bool) throws -> ResolvedAnswer {
        ResolvedAnswer(
            addresses: try addresses.map { try #require(IPAddress($0)) }, source: .dns,
            isComplete: isComplete, expiresAtMilliseconds: .max)
    }
}
