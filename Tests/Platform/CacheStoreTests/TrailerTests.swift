import CachePolicy
import CacheTestSupport
import HTTPCore
import TestSupport
import Testing

@testable import CacheStore

@Suite("Trailers that come at the end of a body")
struct TrailerTests {
    private let folder = TemporaryFolder()

    /// The trailers of a chunked message with these lines.
    private func trailers(_ lines: String) throws -> TrailerSection {
        var decoder = ChunkedDecoder()
        let message = Array("0\r\n\(lines)\r\n".utf8)
        var position = 0
        while !decoder.isComplete {
            let step = try decoder.decode(message.span.extracting(position...))
            if case .needMore(let consumed) = step { position += consumed }
        }
        return try #require(decoder.trailerSection)
    }

    private func put(
        _ content: [UInt8], _ lines: String, announced: Bool, in store: CacheStore
    ) throws -> StoreOutcome {
        let length = announced ? UInt64(content.count) : nil
        let ticket = try store.begin("http://a/", length: length)
        #expect(content.withUnsafeBytes { ticket.append($0) })
        return ticket.finish(trailers: try trailers(lines))
    }

    private let whole = head() + Array("\r\nX-Sum: 1\r\n".utf8)

    @Test(arguments: [0, 1, 1000, 32_767, 32_768, 200_000], [true, false])
    func `are at the end of the head in memory`(_ count: Int, announced: Bool) throws {
        let store = CacheStore(options: .small())
        let content = body(count)
        #expect(
            try put(content, "X-Sum: 1\r\n", announced: announced, in: store).refusal == nil)
        let response = try #require(store.inMemory("http://a/").first)
        #expect([UInt8](response.head) == whole)
        #expect(store.bytes(response) == content)
        #expect(response.metadata.flags.contains(.hasTrailers))
        var expected = metadata(whole)
        expected.bodyBytes = UInt64(count)
        #expect(response.metadata == expected)
        #expect(store.statistics().gatheringBytes == 0)
    }

    @Test(arguments: [0, 1000, 300_000, 3_000_000])
    func `survive a restart with the body`(_ count: Int) throws {
        let content = body(count)
        let first = CacheStore(options: .small(folder)).ready()
        _ = try put(content, "X-Sum: 1\r\n", announced: false, in: first)
        first.close()
        let second = CacheStore(options: .small(folder)).ready()
        let response = try #require(second.loaded("http://a/").first)
        #expect([UInt8](response.head) == whole)
        #expect(response.metadata.flags.contains(.hasTrailers))
        #expect(second.bytes(response) == content)
    }

    @Test func `are counted in the bytes that a response occupies`() throws {
        func bytes(_ lines: String) throws -> Int {
            let store = CacheStore(options: .small())
            _ = try put(body(100), lines, announced: true, in: store)
            return store.statistics().memoryBytes
        }
        let long = "X-Sum: " + String(repeating: "1", count: 5000) + "\r\n"
        #expect(try bytes(long) >= bytes("X-Sum: 1\r\n") + 4000)
    }

    @Test func `that are none for a response to have leave the head as it is`() throws {
        let store = CacheStore(options: .small())
        _ = try put(body(10), "Content-Length: 10\r\nVary: *\r\n", announced: true, in: store)
        let response = try #require(store.inMemory("http://a/").first)
        #expect([UInt8](response.head) == head())
        #expect(!response.metadata.flags.contains(.hasTrailers))
    }
}
