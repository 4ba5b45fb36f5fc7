import CLinux
import Clocks
import ImageCodecs
import PinfoldConfiguration
import Transformation

/// Checks and converts images in separate processes, so that one that makes a library misbehave
/// costs nothing but its own result.
///
/// A process is started when an image arrives and none is free. It decodes one image at a time, and
/// is ended when it has been idle for a while, has decoded many, or failed: by a crash, an invalid
/// answer, or a timeout. Called from threads that may block; it does.
package final class ImageService: ImageTransforming {
    private let pool: WorkerPool

    /// Options for the processes; times are in nanoseconds.
    package struct Options: Sendable {
        /// The program and its first arguments; `--memory BYTES --seconds SECONDS` are appended.
        package var command = ["/proc/self/exe", "image-worker"]
        /// The maximum number of processes.
        package var processes = 2
        /// The maximum time for one image, from question to answer.
        package var longestWork: Int64 = 10_000_000_000
        /// The maximum time from starting a process to its greeting.
        package var longestStart: Int64 = 30_000_000_000
        /// The maximum time to wait for a free process.
        package var longestWait: Int64 = 30_000_000_000
        /// The idle time after which a process is ended.
        package var longestIdle: Int64 = 60_000_000_000
        /// The maximum number of images decoded by one process.
        package var imagesPerProcess = ImageWorker.mostImages
        /// The maximum number of bytes of an image, and of its result.
        package var maximumBytes = 64 << 20
        /// Called at most once, with the confinement that the system does not allow the processes.
        package var note: @Sendable (String) -> Void = { _ in }

        package init() {}

        /// Seconds after which a process ends itself, when the gateway has long given it up.
        var alarmSeconds: Int { Int(longestWork / 1_000_000_000) + 2 }
    }

    package init(_ options: Options = Options()) { pool = WorkerPool(options) }

    deinit { end() }

    /// Ends all processes and waits until they are gone; images in progress are refused.
    package func end() { pool.end() }

    /// The current processes, those at work without their descriptor; for tests.
    package var processes: [(pid: pid_t, descriptor: Int32)] { pool.processes }

    package func transform(
        _ image: [UInt8], by rules: ImageRules
    ) throws(TransformationError) -> TranslatedContent? {
        let plan = ImagePlan(rules, maximumBytes: pool.options.maximumBytes)
        // What needs no decoding needs no process either.
        guard image.count <= plan.maximumBytes else {
            throw Self.refusal(.tooManyBytes(limit: plan.maximumBytes))
        }
        guard let kind = ImageKind(signatureOf: image) else { throw Self.refusal(.notAnImage) }
        guard plan.conversions[kind] != nil || plan.accepted.contains(kind) else {
            throw Self.refusal(.notAccepted(kind))
        }
        switch try apply(plan, to: image) {
        case .success(nil):
            return nil
        case .success(let made?):
            return TranslatedContent(bytes: made.bytes, contentType: made.kind.mediaType)
        case .failure(let failure):
            throw Self.refusal(failure)
        }
    }

    private func apply(
        _ plan: ImagePlan, to image: [UInt8]
    ) throws(TransformationError) -> Result<WrittenImage?, ImageCodecError> {
        var worker = try takeWorker(memory: plan.memory)
        do {
            let deadline = Clock.monotonicNanoseconds() + pool.options.longestWork
            let result = try worker.apply(plan, to: image, deadline: deadline)
            pool.give(worker)
            return result
        } catch {
            let status = pool.discard(worker)
            throw refusal(error, status)
        }
    }

    private func takeWorker(memory: Int) throws(TransformationError) -> WorkerProcess {
        do {
            if let worker = try pool.take(memory: memory) { return worker }
        } catch .notStarted(let code) {
            let text = String(cString: strerror(code))
            throw TransformationError(
                .overloaded, "no process that decodes images could be started: \(text)")
        } catch {
            throw TransformationError(
                .overloaded, "a process that decodes images did not begin to work")
        }
        throw TransformationError(
            .overloaded, "no process that decodes images became free in time")
    }

    private static func refusal(_ failure: ImageCodecError) -> TransformationError {
        TransformationError(.responseImageRefused, failure.detail)
    }

    /// - Parameter status: the process's status from waitpid(2).
    private func refusal(_ fault: WorkerError, _ status: Int32) -> TransformationError {
        let detail =
            switch fault {
            case .late:
                "decoding the image took longer than "
                    + "\(pool.options.longestWork / 1_000_000) milliseconds"
            case .nonsense:
                "the image decoding process gave no valid answer"
            case .ended, .notStarted:
                status & 0x7F == 0
                    ? "the image decoding process exited with code \(status >> 8 & 0xFF)"
                    : "the image decoding process was killed by signal \(status & 0x7F)"
            }
        return TransformationError(.responseImageRefused, detail)
    }
}

extension ImagePlan {
    /// The plan for a route's rules.
    package init(_ rules: ImageRules, maximumBytes: Int) {
        self.init()
        if let types = rules.accept { accepted = Set(types.map { ImageKind($0) }) }
        for conversion in rules.convert {
            conversions[ImageKind(conversion.from)] = ImageKind(conversion.to)
        }
        maximumPixels = max(0, rules.maximumPixels)
        self.maximumBytes = maximumBytes
        maximumResultBytes = maximumBytes
        if let size = rules.scaleTo {
            let sides = 1...Self.largestSide
            scale = (
                min(max(size.width, sides.lowerBound), sides.upperBound),
                min(max(size.height, sides.lowerBound), sides.upperBound)
            )
        }
    }

    /// Bytes of memory that a process may need for it. A pixel takes four as RGBA, as many again if
    /// it is rotated, up to eight in the decoder, and twice that in those that keep frames; the
    /// image and the result have two copies each.
    var memory: Int {
        let (pixels, overflow) = maximumPixels.multipliedReportingOverflow(by: 32)
        let most = 1 << 40
        return (256 << 20) + 4 * min(maximumBytes, most) + (overflow ? most : min(pixels, most))
    }
}

extension ImageKind {
    package init(_ type: ImageType) {
        self =
            switch type {
            case .png: .png
            case .jpeg: .jpeg
            case .gif: .gif
            case .webp: .webp
            case .avif: .avif
            }
    }

    /// The value of Content-Type.
    package var mediaType: String {
        switch self {
        case .png: ImageType.png.rawValue
        case .jpeg: ImageType.jpeg.rawValue
        case .gif: ImageType.gif.rawValue
        case .webp: ImageType.webp.rawValue
        case .avif: ImageType.avif.rawValue
        }
    }
}
