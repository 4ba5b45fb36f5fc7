import CLinux
import Clocks
import EventLoop
import HTTPCore
import RedisProtocol
import Synchronization
import TestSupport
import Threads

/// Answers whatever it is asked as a Sentinel answers where the master is: always with one server.
final class FixedSentinel: Sendable {
    let place: LoopbackPlace
    private let answer: [UInt8]
    private let isOver = Atomic<Bool>(false)

    init(naming server: LoopbackPlace) throws {
        place = try LoopbackPlace.drawn()
        // An array of strings is a command as well.
        answer = RedisCommand(server.host, "\(server.port)").bytes
        guard let address = IPAddress(literal: Array(place.host.utf8).span) else {
            throw LoopbackPlace.PlaceError()
        }
        let listener = try Sockets.listen(on: Endpoint(address: address, port: place.port))
        // It ends by itself.
        _ = try Thread(name: "fixed-sentinel") { [self] in run(listener) }
    }

    func end() { isOver.store(true, ordering: .relaxed) }

    private func run(_ listener: Int32) {
        var clients: [Int32] = []
        var memory = [UInt8](repeating: 0, count: 4096)
        while !isOver.load(ordering: .relaxed) {
            if case .connection(let client, _) = Sockets.accept(listener) { clients.append(client) }
            for index in clients.indices.reversed() {
                switch memory.withUnsafeMutableBytes({ Transfers.read(clients[index], into: $0) }) {
                case .bytes:
                    _ = answer.withUnsafeBytes { Transfers.write(clients[index], $0) }
                case .wouldBlock: break
                case .endOfStream, .failed: Descriptors.close(clients.remove(at: index))
                }
            }
            usleep(500)
        }
        for client in clients { Descriptors.close(client) }
        Descriptors.close(listener)
    }
}
