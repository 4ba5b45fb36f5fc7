import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import Gateway
@testable import PinfoldEngine

// Everything that a test of client connections and of relays needs is made here.

extension StillWorker {
    /// A client's end of a connection that the worker has accepted.
    func client() throws -> Peer {
        let (near, far) = try Peer.pair()
        worker.accept(
            near, from: try #require(Endpoint("127.0.0.1:1")), on: listener.ingress)
        return far
    }

    /// The existing client connections, latest last.
    var clientConnections: [ClientConnection] {
        worker.loop.handlers.compactMap { $0 as? ClientConnection }
    }

    /// Sends a text and turns the loop until the worker has read all of it from its clients.
    func submit(
        _ text: some StringProtocol, from client: Peer,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let metrics = worker.metrics
        let before = metrics.value(.clientBytesReceived)
        client.send(text)
        turn(until: "it is read", sourceLocation: sourceLocation) {
            metrics.value(.clientBytesReceived) == before + UInt64(text.utf8.count)
        }
    }

    /// What clients and their exchanges take of the worker.
    var clientCounts: ClientCounts {
        let metrics = worker.metrics
        return ClientCounts(
            connections: metrics.value(.clientConnectionsOpen),
            places: worker.shared.clientConnections.load(ordering: .relaxed),
            clients: worker.shared.clients.count,
            exchanges: metrics.value(.exchangesInFlight),
            headBytes: metrics.value(.headBufferBytes),
            buffers: worker.loop.buffers.outstanding)
    }
}

/// What clients occupy; nothing by default.
struct ClientCounts: Equatable {
    var connections: Int64 = 0
    var places = 0
    var clients = 0
    var exchanges: Int64 = 0
    var headBytes: Int64 = 0
    var buffers = 0
}

extension ScriptedServer {
    /// A request to it through a proxy.
    func request(
        _ method: String = "GET", version: String = "1.1", fields: String = "", body: String = ""
    ) -> String {
        "\(method) http://\(endpoint)/p HTTP/\(version)\r\nHost: \(endpoint)\r\n\(fields)\r\n"
            + body
    }
}
