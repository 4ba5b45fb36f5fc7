import CLinux
import Clocks
import HTTPTypes
import Locking
import TestSupport
import Testing
import Threads

@testable import PinfoldClient

/// A source that blocks until it is opened, and then ends.
private final class StuckSource: ByteSource, Sendable {
    private let isOpen = Monitor(false)
    private let (reads, continuation) = AsyncStream.makeStream(of: Void.self)

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        continuation.yield()
        return isOpen.wait { $0 ? .done(0) : .signal }
    }

    /// Waits until this number of further reads have begun.
    func reads(_ count: Int = 1) async {
        for _ in 0..<count { _ = await reads.first { true } }
    }

    func open() {
        isOpen.withLock { $0 = true }
        isOpen.broadcast()
    }
}

/// The name of the calling thread in ps(1).
func nameOfThread() -> String {
    var name = [UInt8](repeating: 0, count: 16)
    let file = fopen("/proc/thread-self/comm", "r")
    let count = file.map { fread(&name, 1, name.count, $0) } ?? 0
    _ = file.map { fclose($0) }
    return String(decoding: name[..<count], as: UTF8.self).filter { !$0.isNewline }
}

/// A source of a single byte.
private struct FirstByte: ByteSource {
    private var source: (any ByteSource)?

    init(_ source: any ByteSource) { self.source = source }

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        guard var source = source.take() else { return 0 }
        return try source.read(into: buffer)
    }
}

@Suite("Content from a source that gives nothing")
struct SourceFeedTests {
    @Test func `occupies one thread, and no other when it is closed`() async {
        let pool = ThreadPool(name: "test", threads: 2, niceness: 0, limit: 16)
        let source = StuckSource()
        defer {
            source.open()
            pool.close()
        }
        let feed = SourceFeed(length: nil, pauseMilliseconds: 0, on: pool) { source }
        feed.next { _ in }
        await source.reads()
        feed.close()
        let isDone = Monitor(false)
        _ = pool.run {
            isDone.withLock { $0 = true }
            isDone.broadcast()
        }
        let end = Clock.monotonicNanoseconds() + 60_000_000_000
        #expect(
            isDone.wait { isDone in
                isDone || Clock.monotonicNanoseconds() >= end ? .done(isDone) : .until(end)
            })
    }

    @Test func `is released when its read returns after it was closed`() async {
        final class Held: ByteSource {
            let stuck: StuckSource
            let whenGone: @Sendable () -> Void

            init(_ stuck: StuckSource, whenGone: @escaping @Sendable () -> Void) {
                (self.stuck, self.whenGone) = (stuck, whenGone)
            }

            deinit { whenGone() }

            func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
                _ = stuck.read(into: buffer)
                buffer[0] = 1
                return 1
            }
        }
        let pool = ThreadPool(name: "test", threads: 1, niceness: 0, limit: 16)
        let (stuck, isGone) = (StuckSource(), Locked(false))
        let feed = SourceFeed(length: nil, pauseMilliseconds: 0, on: pool) {
            Held(stuck) { isGone.withLock { $0 = true } }
        }
        let part = Locked<ContentPart?>(nil)
        feed.next { given in part.withLock { $0 = given } }
        await stuck.reads()
        feed.close()
        #expect(!isGone.withLock { $0 })
        stuck.open()
        pool.close()
        #expect(isGone.withLock { $0 })
        guard case .bytes([1]) = part.withLock({ $0 }) else {
            Issue.record("the part was not delivered")
            return
        }
    }

    @Test func `does not hold up files`() async throws {
        let folder = TemporaryFolder()
        try folder.write("hello", to: "a")
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.text)
            return true
        } _: { server, runtime in
            let source = StuckSource()
            defer { source.open() }
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.post, server.url)
            let tasks = (0..<4).map { _ in
                Task {
                    _ = try await session.data(for: request, content: .source { source })
                }
            }
            await source.reads(4)
            for task in tasks { task.cancel() }
            for task in tasks { _ = await task.result }
            var options = RequestOptions()
            options.timeout = .seconds(60)
            let response = try await session.data(
                for: request, content: .file(folder.file("a")), options: options)
            #expect(response.text == "hello")
        }
    }

    @Test func `is read by separate threads, also in forms`() async throws {
        struct Watched: ByteSource {
            let threads: Locked<[String]>

            func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
                threads.withLock { $0.append(nameOfThread()) }
                buffer[0] = UInt8(ascii: "x")
                return 1
            }
        }
        try await withServer { connection, request in
            connection.respond("200 OK", [], "\(request.content.count)")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let threads = Locked<[String]>([])
            var form = MultipartForm()
            try form.append(length: 1, name: "a", fileName: "a", contentType: "text/plain") {
                FirstByte(Watched(threads: threads))
            }
            let contents: [RequestContent] = [
                .source(length: 1) { Watched(threads: threads) }, .multipart(form.body()),
            ]
            for content in contents {
                _ = try await session.data(
                    for: try HTTPRequest(.post, server.url), content: content)
            }
            #expect(threads.withLock { $0 } == ["pinfold-source", "pinfold-source"])
        }
    }
}
