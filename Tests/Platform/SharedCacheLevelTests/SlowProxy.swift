import CLinux
import Clocks
import EventLoop
import HTTPCore
import Synchronization
import TestSupport
import Threads

/// Passes bytes between clients and an engine, each only after a delay.
final class SlowProxy: Sendable {
    /// What is on its way in one direction.
    private struct Direction {
        let source: Int32
        let sink: Int32
        var waiting: [(due: Int64, bytes: [UInt8])] = []

        /// Takes what has arrived. Returns `false` at the end.
        mutating func take(due: Int64) -> Bool {
            var memory = [UInt8](repeating: 0, count: 1 << 16)
            let result = memory.withUnsafeMutableBytes { Transfers.read(source, into: $0) }
            switch result {
            case .bytes(let count): waiting.append((due, Array(memory[..<count])))
            case .wouldBlock: break
            case .endOfStream, .failed: return false
            }
            return true
        }

        /// Passes on what is due. Returns `false` if nobody takes it.
        mutating func pass(now: Int64) -> Bool {
            while let (due, bytes) = waiting.first, due <= now {
                switch bytes.withUnsafeBytes({ Transfers.write(sink, $0) }) {
                case .bytes(let count) where count == bytes.count: waiting.removeFirst()
                case .bytes(let count): waiting[0].bytes.removeFirst(count)
                case .wouldBlock: return true
                case .endOfStream, .failed: return false
                }
            }
            return true
        }
    }

    private let folder = TemporaryFolder()
    private let server: String
    private let delay = Atomic<Int64>(0)
    private let isOver = Atomic<Bool>(false)

    /// Where clients connect.
    var path: String { folder.file("p") }

    /// - Parameter server: the path of the engine's socket.
    init(to server: String) throws {
        self.server = server
        let listener = try UnixSockets.listen(at: UnixSocketPath(path: path)).descriptor
        // It ends by itself.
        _ = try Thread(name: "slow-proxy") { [self] in run(listener) }
    }

    func end() { isOver.store(true, ordering: .relaxed) }

    /// How long bytes take from now on, in each direction.
    func setDelay(milliseconds: Int64) { delay.store(milliseconds, ordering: .relaxed) }

    private func run(_ listener: Int32) {
        var pairs: [(Direction, Direction)] = []
        while !isOver.load(ordering: .relaxed) {
            if case .connection(let client, _) = Sockets.accept(listener) {
                if let engine = try? UnixSockets.connectAtOnce(to: server) {
                    pairs.append(
                        (
                            Direction(source: client, sink: engine),
                            Direction(source: engine, sink: client)
                        ))
                } else {
                    Descriptors.close(client)
                }
            }
            let now = Clock.monotonicMilliseconds()
            let due = now + delay.load(ordering: .relaxed)
            for index in pairs.indices.reversed() {
                let isOpen =
                    pairs[index].0.take(due: due) && pairs[index].1.take(due: due)
                    && pairs[index].0.pass(now: now) && pairs[index].1.pass(now: now)
                if !isOpen { close(pairs.remove(at: index)) }
            }
            usleep(500)
        }
        for pair in pairs { close(pair) }
        Descriptors.close(listener)
    }

    private func close(_ pair: (Direction, Direction)) {
        Descriptors.close(pair.0.source)
        Descriptors.close(pair.0.sink)
    }
}
