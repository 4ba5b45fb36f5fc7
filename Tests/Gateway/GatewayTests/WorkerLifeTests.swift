import CLinux
import EngineTestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("A worker's end")
struct WorkerLifeTests {
    @Test func `a worker is not kept alive by what it owned`() throws {
        weak var worker: Worker?
        do {
            let still = try StillWorker()
            worker = still.worker
            #expect(worker != nil)
        }
        #expect(worker == nil)
    }

    @Test(arguments: ["", "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET /"])
    func `a worker is not kept alive by connections`(_ sent: String) throws {
        weak var worker: Worker?
        do {
            let still = try StillWorker()
            worker = still.worker
            let (client, far) = try still.connect()
            defer { close(far) }
            if !sent.isEmpty {
                write(sent, to: far)
                client.ready(.readable)
                #expect(sent == "GET /" || client.exchange?.state.name == "connecting")
            }
        }
        #expect(worker == nil)
    }

    /// Connections to servers and their pool refer to each other, some even when they are closed.
    @Test(arguments: [true, false])
    func `a worker is not kept alive by connections to servers`(thatAreClosed areClosed: Bool)
        throws
    {
        weak var worker: Worker?
        weak var environment: Environment?
        weak var pool: UpstreamPool?
        do {
            let still = try StillWorker.reachingLoopback()
            (worker, environment, pool) = (still.worker, still.worker.environment, still.pool)
            let server = try ScriptedServer()
            let (consumer, peer) = try still.exchange(server)
            still.answer(consumer, from: peer)
            if areClosed {
                peer.close()
                still.turn(until: "it is closed") {
                    still.worker.metrics.value(.upstreamConnectionsOpen) == 0
                }
            }
        }
        #expect(worker == nil)
        #expect(environment == nil)
        #expect(pool == nil)
    }

    /// Its share of the worker's connections does not outlive the last of them.
    @Test func `a worker is not kept alive by clients that came and went`() throws {
        weak var worker: Worker?
        do {
            let still = try StillWorker()
            worker = still.worker
            for port in 1...3 {
                close(try still.accept("10.0.0.1:\(port)"))
                still.worker.loop.turn(waitingAtMost: 0)
            }
            #expect(still.worker.shared.clients.count == 0)
        }
        #expect(worker == nil)
    }
}
