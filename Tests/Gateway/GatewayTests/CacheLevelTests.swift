import CacheStore
import CacheTestSupport
import EngineTestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// A worker whose cache has a level that does not know what it has (`RemoteLevel`).
@Suite("A cache with a level that does not know what it has")
struct CacheLevelTests {
    private func response(_ content: String, _ fields: String = "") -> String {
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"\(content)\"\r\n\(fields)"
            + "Content-Length: \(content.utf8.count)\r\n\r\n\(content)"
    }

    @Test(arguments: ["", "Vary: Accept\r\n"])
    func `keeps the response that replaces a stored one after its validation`(
        _ fields: String
    ) throws {
        let remote = RemoteServer()
        var options = CacheStoreOptions()
        options.diskBytes = 0
        let store = CacheStore(options: options, below: [RemoteLevel(remote)])
        let server = try ScriptedServer()
        let still = try StillWorker.reachingLoopback(store: store)
        let request = "GET http://\(server.host):\(server.port)/ HTTP/1.1\r\nHost: a\r\n\r\n"
        let client = try still.client()
        client.send(request)
        let peer = try still.peer(of: server)
        still.await("\r\n\r\n", at: peer)
        peer.send(response("first"))
        still.await("\r\n\r\nfirst", at: client)
        client.forget()
        peer.forget()
        client.send(request)
        still.await("If-None-Match: \"first\"", at: peer)
        peer.send(response("second", fields))
        still.await("\r\n\r\nsecond", at: client)
        // With another Vary key the old one would not have been replaced.
        store.flushNow()
        #expect(remote.counts.values == 1)
        #expect(store.statistics().memoryEntries == 1)
        store.close()
    }
}
