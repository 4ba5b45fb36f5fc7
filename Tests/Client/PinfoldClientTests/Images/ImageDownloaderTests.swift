import Glibc
import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient
@testable import PinfoldImages

/// A server of one image, which may be held back, and a downloader for it.
final class ImageFixture: Sendable {
    let server: TestServer
    let downloader: ImageDownloader
    /// The paths of requests as they arrive.
    let asked: AsyncStream<String>
    private let gate: AnswerGate

    func release() { gate.open() }

    func request(_ path: String, fields: HTTPFields = [:]) throws -> HTTPRequest {
        try HTTPRequest(.get, "\(server.url)\(path)", fields: fields)
    }

    /// Waits for this number of further requests.
    func waitForRequests(_ count: Int) async -> Set<String> {
        var paths: Set<String> = []
        for await path in asked {
            paths.insert(path)
            if paths.count == count { break }
        }
        return paths
    }

    /// Starts a download, and returns its end.
    func ended(
        _ path: String, _ options: RequestOptions = RequestOptions()
    ) throws -> (ImageDownloadReceipt?, Task<Result<ImageDownload, ClientError>?, Never>) {
        let (results, continuation) = AsyncStream.makeStream(
            of: Result<ImageDownload, ClientError>.self)
        let receipt = downloader.download(try request(path), options: options) {
            continuation.yield($0)
            continuation.finish()
        }
        return (receipt, Task { await results.first { _ in true } })
    }

    fileprivate init(
        _ server: TestServer, _ downloader: ImageDownloader, _ asked: AsyncStream<String>,
        _ gate: AnswerGate
    ) {
        self.server = server
        self.downloader = downloader
        self.asked = asked
        self.gate = gate
    }

    /// - Parameter held: Whether the server waits for ``release()`` before it answers.
    static func run(
        held: Bool = false, maximumActive: Int = 4, order: QueueOrder = .firstInFirstOut,
        serializer: ImageResponseSerializer = ImageResponseSerializer(),
        _ body: (ImageFixture) async throws -> Void
    ) async throws {
        let gate = try AnswerGate(isOpen: !held)
        let (asked, whenAsked) = AsyncStream.makeStream(of: String.self)
        try await withServer { connection, request in
            whenAsked.yield(request.path)
            connection.wait(at: gate)
            if request.path == "/text" {
                connection.respond("200 OK", ["Content-Type: text/plain"], "no image")
            } else if request.path == "/empty" {
                connection.respond("200 OK", ["Content-Type: image/gif"])
            } else if request.path == "/damaged" {
                connection.respond("200 OK", ["Content-Type: image/gif"], "GIF89a")
            } else if request.path == "/missing" {
                connection.respond("404 Not Found", ["Content-Type: image/gif"])
            } else {
                let image = SampleImage.gif()
                connection.send(
                    "HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\n"
                        + "Content-Length: \(image.count)\r\n\r\n")
                connection.send(image)
            }
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.maximumRequestsPerOrigin = 100
            let downloader = ImageDownloader(
                session: try SessionManager(configuration: configuration, runtime: runtime),
                cache: ImageMemoryCache(pressure: [], runtime: runtime), serializer: serializer,
                maximumActiveDownloads: maximumActive, order: order)
            // Otherwise the server's threads would wait forever if a test fails.
            defer { gate.open() }
            try await body(ImageFixture(server, downloader, asked, gate))
        }
    }
}

@Suite("The image downloader")
struct ImageDownloaderTests {
    @Test func `fetches and decodes`() async throws {
        try await ImageFixture.run { fixture in
            let found = try await fixture.downloader.image(for: try fixture.request("/a"))
            #expect(found.image.width == SampleImage.width)
            #expect(found.image.pixels?.rgba.prefix(4) == [255, 0, 0, 255])
            #expect(found.response?.status == .ok)
            #expect(found.request.path == "/a")
        }
    }

    @Test func `merges simultaneous requests for one URL`() async throws {
        try await ImageFixture.run(held: true) { fixture in
            let (first, one) = try fixture.ended("/a")
            let (second, two) = try fixture.ended("/a")
            #expect(first != nil && second != nil && first != second)
            _ = await fixture.waitForRequests(1)
            #expect(fixture.downloader.downloads == (1, 0))
            fixture.release()
            let images = (try await one.value?.get().image, try await two.value?.get().image)
            #expect(images.0 != nil && images.0 == images.1)
            #expect(fixture.server.requests.count == 1)
        }
    }

    @Test func `distinguishes requests by fields and cache policy`() async throws {
        try await ImageFixture.run(held: true) { fixture in
            let (downloader, options) = (fixture.downloader, RequestOptions())
            var fresh = options
            fresh.cachePolicy = .reloadIgnoringCache
            downloader.download(try fixture.request("/a")) { _ in }
            downloader.download(
                try fixture.request("/a", fields: [.authorization: "Basic eA=="])
            ) { _ in }
            downloader.download(try fixture.request("/a"), options: fresh) { _ in }
            #expect(downloader.downloads == (3, 0))
        }
    }

    @Test func `continues for the others if one caller cancels`() async throws {
        try await ImageFixture.run(held: true) { fixture in
            let (first, one) = try fixture.ended("/a")
            let (_, two) = try fixture.ended("/a")
            fixture.downloader.cancel(try #require(first))
            await #expect(throws: ClientError.self) { try await one.value?.get() }
            fixture.release()
            let image = try await two.value?.get().image
            #expect(image?.format == .gif)
            // What has ended cannot be cancelled.
            fixture.downloader.cancel(try #require(first))
            #expect(fixture.server.requests.count == 1)
        }
    }

    @Test func `ends the transfer with its last caller`() async throws {
        let (asked, whenAsked) = AsyncStream.makeStream(of: Void.self)
        let (closed, whenClosed) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, _ in
            whenAsked.yield()
            connection.waitForEnd()
            whenClosed.yield()
            return false
        } _: { server, runtime in
            let downloader = ImageDownloader(
                session: try SessionManager(configuration: .patient, runtime: runtime), cache: nil)
            let request = try HTTPRequest(.get, server.url)
            let receipts = (0..<2).map { _ in downloader.download(request) { _ in } }
            _ = await asked.first { true }
            for case let receipt? in receipts { downloader.cancel(receipt) }
            _ = await closed.first { true }
        }
    }

    @Test func `never sends what is cancelled while it waits`() async throws {
        try await ImageFixture.run(held: true, maximumActive: 1) { fixture in
            let (_, first) = try fixture.ended("/1")
            let (waiting, second) = try fixture.ended("/2")
            let (_, third) = try fixture.ended("/3")
            #expect(fixture.downloader.downloads == (1, 2))
            fixture.downloader.cancel(try #require(waiting))
            guard case .failure(let error)? = await second.value else {
                Issue.record("it was not cancelled")
                return
            }
            #expect(error.reason == .cancelled)
            #expect(error.url.hasSuffix("/2"))
            fixture.release()
            _ = try await first.value?.get()
            _ = try await third.value?.get()
            #expect(fixture.server.requests.map(\.path) == ["/1", "/3"])
        }
    }

    @Test func `has at most four active downloads`() async throws {
        try await ImageFixture.run(held: true) { fixture in
            let all = try (0..<6).map { try fixture.ended("/\($0)").1 }
            #expect(await fixture.waitForRequests(4) == ["/0", "/1", "/2", "/3"])
            #expect(fixture.downloader.downloads == (4, 2))
            fixture.release()
            for one in all { _ = try await one.value?.get() }
            #expect(fixture.server.requests.count == 6)
        }
    }

    @Test(arguments: [
        (QueueOrder.firstInFirstOut, ["/0", "/1", "/2", "/3"]),
        (.lastInFirstOut, ["/0", "/3", "/2", "/1"]),
    ])
    func `starts the next one in order`(order: QueueOrder, paths: [String]) async throws {
        try await ImageFixture.run(held: true, maximumActive: 1, order: order) { fixture in
            let all = try (0..<4).map { try fixture.ended("/\($0)").1 }
            fixture.release()
            for one in all { _ = try await one.value?.get() }
            #expect(fixture.server.requests.map(\.path) == paths)
        }
    }

    @Test func `starts those of a higher priority first, and what they have joined`() async throws {
        try await ImageFixture.run(held: true, maximumActive: 1) { fixture in
            var (high, low) = (RequestOptions(), RequestOptions())
            high.priority = .high
            low.priority = .low
            let all = [
                try fixture.ended("/0").1, try fixture.ended("/1", low).1,
                try fixture.ended("/2").1, try fixture.ended("/3", high).1,
                try fixture.ended("/1", high).1,
            ]
            fixture.release()
            for one in all { _ = try await one.value?.get() }
            #expect(fixture.server.requests.map(\.path) == ["/0", "/3", "/1", "/2"])
        }
    }

    @Test func `answers from the cache without response and receipt`() async throws {
        try await ImageFixture.run { fixture in
            _ = try await fixture.downloader.image(for: try fixture.request("/a"))
            let (receipt, ended) = try fixture.ended("/a")
            #expect(receipt == nil)
            let found = try #require(try await ended.value?.get())
            #expect(found.response == nil)
            #expect(found.image.width == SampleImage.width)
            #expect(fixture.server.requests.count == 1)
        }
    }

    @Test func `contacts the server if the policy ignores the cache`() async throws {
        try await ImageFixture.run { fixture in
            _ = try await fixture.downloader.image(for: try fixture.request("/a"))
            var options = RequestOptions()
            options.cachePolicy = .reloadIgnoringCache
            let (receipt, ended) = try fixture.ended("/a", options)
            #expect(receipt != nil)
            let found = try await ended.value?.get()
            #expect(found?.response != nil)
            #expect(fixture.server.requests.count == 2)
        }
    }

    @Test(arguments: ["/text", "/empty", "/damaged", "/missing"])
    func `fails if the response is not an image`(path: String) async throws {
        try await ImageFixture.run { fixture in
            let error = await failure {
                _ = try await fixture.downloader.image(for: try fixture.request(path))
            }
            #expect(error?.reason == .serialization)
            #expect(fixture.downloader.downloads == (0, 0))
        }
    }

    @Test func `rejects an invalid URL, without a receipt`() async throws {
        try await ImageFixture.run { fixture in
            let request = HTTPRequest(method: .get, scheme: "ftp", authority: "a", path: "/")
            let (results, continuation) = AsyncStream.makeStream(
                of: Result<ImageDownload, ClientError>.self)
            let receipt = fixture.downloader.download(request) { continuation.yield($0) }
            #expect(receipt == nil)
            guard case .failure(let error)? = await results.first(where: { _ in true }) else {
                Issue.record("it was taken")
                return
            }
            #expect(error.reason == .invalidRequest)
        }
    }

    @Test func `ends with the task that waits for it`() async throws {
        try await ImageFixture.run(held: true) { fixture in
            let request = try fixture.request("/a")
            let task = Task {
                await failure { _ = try await fixture.downloader.image(for: request) }
            }
            _ = await fixture.waitForRequests(1)
            task.cancel()
            #expect(await task.value?.reason == .cancelled)
            let begun = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await failure { _ = try await fixture.downloader.image(for: request) }
            }
            #expect(await begun.value?.reason == .cancelled)
        }
    }

    /// Records on which thread it is called.
    private struct WatchedDecoder: ImageDecoding {
        let thread = Locked("")

        func decode(
            _ content: [UInt8], _ format: ImageFormat, limits: ImageLimits
        ) throws(ImageError) -> ImagePixels {
            thread.withLock { $0 = nameOfThread() }
            return ImagePixels(width: 1, height: 1, rgba: [1, 2, 3, 4])
        }
    }

    @Test func `decodes off the loop`() async throws {
        let decoder = WatchedDecoder()
        let serializer = ImageResponseSerializer(decoder: decoder)
        try await ImageFixture.run(serializer: serializer) { fixture in
            let found = try await fixture.downloader.image(for: try fixture.request("/a"))
            #expect(found.image.pixels?.rgba == [1, 2, 3, 4])
            #expect(decoder.thread.withLock { $0 } == "pinfold-files")
        }
    }

    @Test func `applies the serializer's limit to the content`() async throws {
        var serializer = ImageResponseSerializer()
        serializer.limits.bytes = 16
        try await ImageFixture.run(serializer: serializer) { fixture in
            let error = await failure {
                _ = try await fixture.downloader.image(for: try fixture.request("/a"))
            }
            #expect(error?.reason == .contentTooLong)
        }
    }
}
