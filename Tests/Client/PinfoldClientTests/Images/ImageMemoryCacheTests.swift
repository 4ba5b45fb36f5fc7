import CLinux
import EventLoop
import Locking
import Testing

@testable import PinfoldClient
@testable import PinfoldImages

@Suite("The image cache")
struct ImageMemoryCacheTests {
    private func image(bytes: Int) -> DecodedImage {
        DecodedImage(
            format: .gif, width: 1, height: 1, scale: 1, frames: 1, bitsPerSample: 8,
            orientation: 1, pixels: nil, content: [UInt8](repeating: 0, count: bytes))
    }

    private func key(_ name: String, _ identifier: String? = nil) -> ImageMemoryCache.Key {
        .init(url: "http://a.test/\(name)", identifier: identifier)
    }

    @Test func `has 100 MB, purged to 60`() {
        let cache = ImageMemoryCache(pressure: [])
        #expect(cache.memoryCapacity == 100 << 20)
        #expect(cache.preferredMemoryUsageAfterPurge == 60 << 20)
    }

    @Test func `purges by least recent access`() {
        let cache = ImageMemoryCache(
            memoryCapacity: 100, preferredMemoryUsageAfterPurge: 60, pressure: [])
        for name in ["a", "b", "c", "d", "e"] { cache.add(image(bytes: 20), for: key(name)) }
        #expect(cache.memoryUsage == 100)
        #expect(cache.image(for: key("a")) != nil)
        cache.add(image(bytes: 20), for: key("f"))
        #expect(cache.memoryUsage == 60)
        #expect(cache.count == 3)
        for name in ["a", "e", "f"] { #expect(cache.image(for: key(name)) != nil) }
        for name in ["b", "c", "d"] { #expect(cache.image(for: key(name)) == nil) }
    }

    @Test func `accounts what it replaces`() {
        let cache = ImageMemoryCache(pressure: [])
        cache.add(image(bytes: 50), for: key("a"))
        cache.add(image(bytes: 20), for: key("a"))
        #expect(cache.memoryUsage == 20)
        #expect(cache.remove(key("a")))
        #expect(!cache.remove(key("a")))
        #expect(cache.memoryUsage == 0)
    }

    @Test func `has a URL's images by the filters that they went through`() {
        let cache = ImageMemoryCache(pressure: [])
        cache.add(image(bytes: 1), for: key("a"))
        cache.add(image(bytes: 2), for: key("a", "circle"))
        #expect(cache.image(for: key("a"))?.content.count == 1)
        #expect(cache.image(for: key("a", "circle"))?.content.count == 2)
        #expect(cache.image(for: key("a", "square")) == nil)
    }

    @Test func `counts pixels and content`() {
        let cache = ImageMemoryCache(pressure: [])
        var decoded = image(bytes: 3)
        decoded.pixels = ImagePixels(
            width: 1, height: 2, rgba: [UInt8](repeating: 0, count: 8), profile: [1])
        cache.add(decoded, for: key("a"))
        #expect(cache.memoryUsage == 12)
    }

    @Test func `reports that memory pressure is not monitored, and why`() {
        let origins: [MemoryPressureSource.Origin] = [
            .events(path: "/nonexistent"),
            .stalls(path: "/nonexistent", stallMilliseconds: 1, windowMilliseconds: 2000),
        ]
        let cache = ImageMemoryCache(pressure: origins)
        let refusals = origins.map {
            MemoryPressureState.UnavailableSource(origin: $0, code: ENOENT)
        }
        #expect(cache.memoryPressure == .unavailable(refusals))
    }

    @Test func `is notified of memory pressure if the kernel allows it`() async throws {
        try await withRuntime { runtime in
            let cache = ImageMemoryCache(runtime: runtime)
            switch cache.memoryPressure {
            case .watched: break
            case .unavailable(let refusals):
                // A kernel without it, or a container that hides it.
                #expect(!refusals.isEmpty)
            case .ended: Issue.record("it has ended at once")
            }
        }
    }

    /// A connection to itself, whose urgent data stands in for the kernel's event.
    private func urgentPair() throws -> (reading: Int32, writing: Int32) {
        let listener = try Sockets.listen(on: try #require(.init("127.0.0.1:0")))
        defer { Descriptors.close(listener) }
        let endpoint = try #require(Sockets.localEndpoint(listener))
        let writing = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = endpoint.port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(writing, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(code == 0)
        var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        poll(&waiting, 1, -1)
        guard case .connection(let reading, _) = Sockets.accept(listener) else {
            throw AcceptError()
        }
        return (reading, writing)
    }

    private struct AcceptError: Error {}

    @Test func `is cleared under memory pressure`() async throws {
        let (reading, writing) = try urgentPair()
        let (acknowledged, whenAcknowledged) = AsyncStream.makeStream(of: Bool.self)
        defer {
            Descriptors.close(reading)
            Descriptors.close(writing)
        }
        try await withRuntime { runtime in
            let cache = ImageMemoryCache(1000, 1000)
            cache.add(image(bytes: 10), for: key("a"))
            let isShort = Locked(false)
            let source = PressureSource(
                origin: .machine, descriptor: reading,
                acknowledge: { () throws(MemoryPressureError) in
                    var byte: UInt8 = 0
                    recv(reading, &byte, 1, Int32(MSG_OOB))
                    defer { whenAcknowledged.yield(isShort.withLock { $0 }) }
                    return isShort.withLock { $0 }
                })
            cache.observe(source, on: runtime)
            #expect(cache.memoryPressure == .watched(.machine))
            var reports = acknowledged.makeAsyncIterator()
            // An event for something else.
            send(writing, [1], 1, Int32(MSG_OOB))
            #expect(await reports.next() == false)
            #expect(cache.count == 1)
            isShort.withLock { $0 = true }
            send(writing, [1], 1, Int32(MSG_OOB))
            #expect(await reports.next() == true)
            await withCheckedContinuation { done in
                runtime.post(.work { _ in done.resume() })
            }
            #expect(cache.memoryUsage == 0)
            #expect(cache.image(for: key("a")) == nil)
            runtime.close()
            #expect(cache.memoryPressure == .ended)
        }
    }

    @Test(
        arguments: [
            ("0::/\n", "/sys/fs/cgroup"),
            ("1:cpu:/x\n0::/system.slice/a.service\n", "/sys/fs/cgroup/system.slice/a.service"),
            ("1:cpu:/x\n", nil), ("", nil), ("0::/../outside\n", nil),
        ] as [(String, String?)])
    func `finds the control group of the process`(text: String, folder: String?) {
        #expect(MemoryPressureSource.Origin.group(in: text) == folder)
    }
}
