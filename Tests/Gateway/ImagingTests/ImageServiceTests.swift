import CLinux
import ImageCodecs
import Locking
import PinfoldConfiguration
import TestSupport
import Testing
import Threads
import Transformation

@testable import Imaging

@Suite("The service for images")
struct ImageServiceTests {
    @Test(
        arguments: [
            "lossy.webp", "lossless-alpha.webp", "animated.webp", "opaque.avif", "alpha.avif",
            "animated.avif", "turned-10bit.avif", "progressive.jpg", "gray.jpg", "cmyk.jpg",
        ])
    func `checks and converts each type in its confined process`(name: String) throws {
        let service = try TestWorker.service()
        let image = try sample(name)
        #expect(try service.transform(image, by: ImageRules()) == nil)
        var rules = ImageRules()
        rules.accept = [.png]
        rules.convert = [ImageType.jpeg, .webp, .avif].map { ImageConversion(from: $0, to: .png) }
        rules.scaleTo = ImageSize(width: 8, height: 8)
        let made = try #require(try service.transform(image, by: rules))
        #expect(made.contentType == "image/png")
        let header = try ImageCodecs.inspect(made.bytes)
        #expect(header.kind == .png && max(header.width, header.height) == 8)
        // All by one process.
        #expect(service.processes.count == 1)
    }

    @Test func `reports when the system confines less`() throws {
        let notes = Locked<[String]>([])
        let service = try TestWorker.service { options in
            options.imagesPerProcess = 1
            options.note = { text in notes.withLock { $0.append(text) } }
        }
        #expect(service.refusal(of: SampleImage.png()) == nil)
        #expect(service.refusal(of: SampleImage.png()) == nil)
        // At most once: never here, except under sanitizers, and where seccomp is refused.
        #expect(notes.withLock { $0.count } <= 1)
        let less = try TestWorker.shell(
            #"printf 'PFI1\002\000\000\000'; exec cat >/dev/null"#
        ) { options in
            options.longestWork = 1
            options.note = { text in notes.withLock { $0 = [text] } }
        }
        _ = less.refusal(of: SampleImage.png())
        #expect(notes.withLock { $0.first?.contains("seccomp") } == true)
    }

    @Test func `refuses by the rules, each with its detail`() throws {
        let service = try TestWorker.service { $0.maximumBytes = 100_000 }
        func detail(_ image: [UInt8], _ change: (inout ImageRules) -> Void = { _ in }) -> String? {
            var rules = ImageRules()
            change(&rules)
            let failure = service.refusal(of: image, by: rules)
            #expect(failure == nil || failure?.reason == .responseImageRefused)
            return failure?.detail
        }
        let png = SampleImage.png()
        #expect(detail(png) == nil)
        #expect(
            detail(Array("<html>".utf8))
                == "the content is not a PNG, JPEG, GIF, WebP or AVIF image")
        #expect(
            detail(png) { $0.accept = [.jpeg] }
                == "the image is PNG, which the route neither accepts nor converts")
        #expect(
            detail(png) { $0.maximumPixels = 383 }
                == "the image has 24 × 16 pixels, and at most 383 are allowed")
        #expect(
            detail([UInt8](repeating: 0, count: 100_001))
                == "the image has more than 100000 bytes")
        #expect(detail(Array(png.dropLast(20))) == "the PNG image ends too early")
        let lossy = try sample("lossy.webp")
        #expect(
            detail(lossy) {
                $0.accept = [.webp]
                $0.scaleTo = ImageSize(width: 1, height: 1)
            } == "the WebP image must be scaled down, and the route accepts neither PNG nor JPEG")
        // None of them needed another process.
        #expect(service.processes.count == 1)
    }

    @Test(arguments: ["lossy.webp", "opaque.avif", "progressive.jpg", "png", "gif"])
    func `refuses what is cut off after each of its bytes`(name: String) throws {
        let image =
            switch name {
            case "png": SampleImage.png()
            case "gif": SampleImage.gif()
            default: try sample(name)
            }
        let service = try TestWorker.service { $0.imagesPerProcess = 10_000 }
        #expect(service.refusal(of: image) == nil)
        let pid = service.processes.first?.pid
        for count in 0..<image.count {
            let failure = service.refusal(of: Array(image.prefix(count)))
            #expect(failure?.reason == .responseImageRefused, "\(count) bytes")
        }
        #expect(service.processes.first?.pid == pid)
    }

    /// The maximum address space of a process so far, in KiB.
    private func peak(_ pid: pid_t) throws -> Int {
        let file = try #require(fopen("/proc/\(pid)/status", "r"))
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
            if text.hasPrefix("VmHWM:") {
                return try #require(Int(text.filter { $0.isNumber }))
            }
        }
        Issue.record("no VmHWM")
        return 0
    }

    @Test func `refuses a bomb without taking memory for it`() throws {
        let service = try TestWorker.service()
        #expect(service.refusal(of: SampleImage.png()) == nil)
        let pid = try #require(service.processes.first?.pid)
        let before = try peak(pid)
        let bomb = SampleImage.bomb(width: 30_000, height: 30_000)
        #expect(bomb.count < 8192)
        #expect(
            service.refusal(of: bomb)?.detail
                == "the image has 30000 × 30000 pixels, and at most 16777216 are allowed")
        #expect(service.processes.first?.pid == pid)
        #expect(try peak(pid) - before < 16 << 10)
    }

    @Test func `survives a rule that allows what memory does not`() throws {
        let service = try TestWorker.service()
        var rules = ImageRules()
        // 900 million pixels may be decoded: either the missing data is noticed at the end of them,
        // or there is no memory for them before that.
        rules.maximumPixels = 1 << 30
        let bomb = SampleImage.bomb(width: 30_000, height: 30_000)
        #expect(service.refusal(of: bomb, by: rules)?.reason == .responseImageRefused)
        #expect(service.refusal(of: SampleImage.png()) == nil)
    }

    @Test func `serves many at once by few processes`() throws {
        let service = try TestWorker.service { $0.processes = 2 }
        let images = try ["lossy.webp", "opaque.avif", "progressive.jpg"].map { try sample($0) }
        var rules = ImageRules()
        rules.convert = [ImageType.jpeg, .webp, .avif].map { ImageConversion(from: $0, to: .png) }
        let (fixed, most) = (rules, Locked(0))
        let done = Locked(0)
        var threads: [Thread] = []
        for index in 0..<100 {
            threads.append(
                try Thread(name: "test") {
                    let image = images[index % images.count]
                    guard let made = try? service.transform(image, by: fixed),
                        ImageKind(signatureOf: made.bytes) == .png
                    else { return }
                    let count = service.processes.count
                    most.withLock { $0 = max($0, count) }
                    done.withLock { $0 += 1 }
                })
        }
        for thread in threads { thread.join() }
        #expect(done.withLock { $0 } == 100)
        #expect(most.withLock { $0 } <= 2)
        #expect(service.processes.count <= 2)
    }
}
