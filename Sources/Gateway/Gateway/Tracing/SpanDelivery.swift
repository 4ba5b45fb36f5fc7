import CLinux
import Clocks
import EventLoop
import HTTPCore
import PinReporting
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver

/// The work of the exporter's thread: collects what the workers have recorded, makes batches of
/// spans, and has the engine deliver them, one at a time. Belongs to that thread.
///
///     collect ──nothing──► rest ──► collect
///        │ a batch                     ▲
///        ▼                             │
///     deliver ──accepted, refused──────┤
///        ▲  └──not now──► back off     │
///        └────────────────────┴──five times: lost
final class SpanDelivery {
    private struct Batch {
        /// The content of the request.
        let message: [UInt8]
        let spans: Int
        var attempts = 0
    }

    private let core: SpanExporterCore
    private let loop: ReporterLoop
    private let resolver: Resolver
    private let version: String
    private let host = MachineName.text
    private var settings: SpanExporter.Settings?
    private var encoder: SpanEncoder?
    /// What carries the deliveries out; `nil` before the first one.
    private var environment: Environment?
    /// The collector, with the connection to it.
    private var origin: Origin?
    /// What is delivered, or is to be delivered again.
    private var batch: Batch?
    private var poster: Poster?
    private var backoff = SpanBackoff()
    /// Whether the workers have recorded more than a batch has room for.
    private var hasMore = false
    /// Whether workers that do not know yet that there is no collector may still record.
    private var looksAgain = false
    private var firstRing = 0
    /// Whether the collector has failed since it last accepted anything, and refused something.
    private var isFailing = false
    private var isRefusing = false
    /// Whether the process ends: nothing is tried again.
    private var isEnding = false

    /// How long spans wait to be sent together with others, in milliseconds.
    private static let intervalMilliseconds: Int64 = 1000
    /// The thread's sleep without a collector.
    private static let idleMilliseconds: Int64 = 3_600_000
    /// The size of a batch: it ends with the exchange that exceeds it.
    private static let batchBytes = 256 << 10
    /// How often a batch is sent before it is lost: those after it wait for it.
    private static let attempts = 5
    /// The most bytes of an answer that are read.
    private static let answerBytes = 4096

    init(core: SpanExporterCore, loop: ReporterLoop, resolver: Resolver, version: String) {
        self.core = core
        self.loop = loop
        self.resolver = resolver
        self.version = version
    }

    /// Works until the process ends.
    func run() {
        follow(core.settings)
        while core.deadline == nil {
            let now = Clock.monotonicMilliseconds()
            proceed(at: now)
            loop.run(until: nextLook(after: now))
            if core.deadline == nil { follow(core.settings) }
        }
        finish()
    }

    private func nextLook(after now: Int64) -> Int64 {
        guard settings != nil else {
            defer { looksAgain = false }
            return now + (looksAgain ? Self.intervalMilliseconds : Self.idleMilliseconds)
        }
        if poster != nil { return now + Self.intervalMilliseconds }
        if let retryAt = backoff.retryAt, batch != nil { return retryAt }
        return hasMore ? now : now + Self.intervalMilliseconds
    }

    private func follow(_ next: SpanExporter.Settings?) {
        let isSame =
            settings?.destination == next?.destination && settings?.context === next?.context
        if settings != nil, next == nil { looksAgain = true }
        settings = next
        encoder = next.map { SpanEncoder(labels: $0.labels) }
        guard !isSame else { return }
        origin = nil
        backoff = SpanBackoff()
        (isFailing, isRefusing) = (false, false)
    }

    /// Begins a delivery, if there is something to deliver and none is under way.
    private func proceed(at now: Int64) {
        guard poster == nil else { return }
        guard let settings else { return lose() }
        if batch == nil { batch = collect() }
        guard batch != nil, backoff.retryAt.map({ now >= $0 }) ?? true else { return }
        deliver(by: settings)
    }

    /// Counts what is left as failed: without a collector, or time, there is nowhere to send it.
    private func lose() {
        var spans = batch?.spans ?? 0
        for ring in core.rings {
            _ = ring.drain(upTo: ring.headPosition) { entry in
                spans += SpanEncoder.count(of: entry.record)
                return true
            }
        }
        if spans > 0 {
            core.count { $0.failed += UInt64(spans) }
            looksAgain = true
        }
        batch = nil
        hasMore = false
    }

    // MARK: Batches

    /// Makes a batch of what the workers have recorded; `nil` if that is nothing.
    private func collect() -> Batch? {
        guard var encoder else { return nil }
        var writer = ProtobufWriter()
        var spans = 0
        hasMore = false
        let count = core.rings.count
        for step in 0..<count where !hasMore {
            let index = (firstRing + step) % count
            let ring = core.rings[index]
            let isDrained = ring.drain(upTo: ring.headPosition) { entry in
                if let trace = entry.record.trace {
                    spans += encoder.append(entry, trace, to: &writer)
                }
                return writer.bytes.count < Self.batchBytes
            }
            guard !isDrained || writer.bytes.count >= Self.batchBytes else { continue }
            // The next one comes first next time: a busy worker must not starve the others.
            firstRing = (index + 1) % count
            hasMore = true
        }
        self.encoder = encoder
        guard spans > 0 else { return nil }
        return Batch(
            message: SpanRequest.message(spans: writer.bytes, version: version, host: host),
            spans: spans)
    }

    // MARK: Delivering

    /// What the answers of a collector mean: only these failures pass (OTLP, "Failures"). Redirects
    /// are not followed.
    static let kind = Poster.Kind(
        contentType: "application/x-protobuf", answerBytes: answerBytes
    ) { answer in
        switch answer.status {
        case 200..<300: .delivered
        case 429, 502, 503, 504:
            .failed(
                "it answered \(answer.status)", answered: true, retryAfter: answer.retryAfter)
        default: .rejected(status: answer.status)
        }
    }

    private func deliver(by settings: SpanExporter.Settings) {
        guard var batch else { return }
        batch.attempts += 1
        self.batch = batch
        do {
            let environment =
                try environment ?? Poster.makeEnvironment(on: loop.loop, resolver: resolver)
            self.environment = environment
            let origin =
                origin
                ?? Origin(
                    named: settings.destination.origin, context: settings.context,
                    policy: environment.policy)
            self.origin = origin
            let poster = Poster(
                batch.message, as: Self.kind, to: settings.destination,
                context: settings.context, over: origin, in: environment
            ) { [unowned self] in ended($0, "\(settings.destination)") }
            self.poster = poster
            poster.start()
        } catch {
            ended(.failed("\(error)", answered: false, retryAfter: nil), "\(settings.destination)")
        }
    }

    /// Processes a delivery that has ended.
    private func ended(_ result: PostResult, _ destination: String) {
        guard let batch else { return }
        let answer = poster?.answer ?? []
        poster = nil
        loop.wake()
        switch result {
        case .interrupted: return
        case .delivered:
            accepted(batch, SpanRequest.Rejection(answer), destination)
        case .rejected(let status):
            backoff.succeeded()
            core.count { $0.rejected += UInt64(batch.spans) }
            refused(UInt64(batch.spans), "it answered \(status)", destination)
            self.batch = nil
        case .failed(let problem, _, let retryAfter):
            if !isFailing { core.onEvent(.failing(destination: destination, problem: problem)) }
            isFailing = true
            backoff.failed(
                now: Clock.monotonicMilliseconds(), asked: retryAfter,
                random: .random(in: 0..<1))
            guard batch.attempts >= Self.attempts || isEnding else {
                return core.count { $0.retries += 1 }
            }
            core.count { $0.failed += UInt64(batch.spans) }
            self.batch = nil
        }
    }

    private func accepted(
        _ batch: Batch, _ rejection: SpanRequest.Rejection, _ destination: String
    ) {
        backoff.succeeded()
        if isFailing { core.onEvent(.recovered(destination: destination)) }
        isFailing = false
        let rejected = min(rejection.spans, UInt64(batch.spans))
        core.count {
            $0.rejected += rejected
            $0.exported += UInt64(batch.spans) - rejected
        }
        if rejected > 0 {
            refused(rejected, rejection.message, destination)
        } else {
            isRefusing = false
        }
        self.batch = nil
    }

    private func refused(_ spans: UInt64, _ problem: String, _ destination: String) {
        if !isRefusing {
            let problem = String(problem.unicodeScalars.prefix(Self.problemCharacters))
            core.onEvent(.rejected(destination: destination, spans: spans, problem: problem))
        }
        isRefusing = true
    }

    /// How much of a collector's message is logged.
    private static let problemCharacters = 256

    // MARK: The end

    /// Called when the process ends: each batch is sent once, until one fails or the time is over.
    private func finish() {
        isEnding = true
        backoff = SpanBackoff()
        let deadline = core.deadline ?? 0
        while settings != nil, Clock.monotonicMilliseconds() < deadline {
            let failed = core.statistics.failed
            proceed(at: Clock.monotonicMilliseconds())
            guard poster != nil else { break }
            while poster != nil, Clock.monotonicMilliseconds() < deadline {
                loop.run(until: deadline)
            }
            if core.statistics.failed > failed { break }
            backoff = SpanBackoff()
        }
        poster?.cancel()
        lose()
        environment?.closeConnections()
        environment?.close()
        loop.loop.forgetDeferred()
        core.end()
    }
}

/// When a collector that failed is tried again: after a second, then twice as long each time, more
/// or less at random, so that not all gateways come back at once.
struct SpanBackoff {
    /// The first delay and the longest, in milliseconds.
    static let firstMilliseconds: Int64 = 1000
    static let longestMilliseconds: Int64 = 30_000
    /// The longest delay that a collector may request (Retry-After).
    static let longestAskedMilliseconds: Int64 = 300_000

    private var failures: Int64 = 0
    /// When it may be tried, in milliseconds of the monotonic clock; `nil` for at once.
    private(set) var retryAt: Int64?

    mutating func succeeded() { self = SpanBackoff() }

    /// - Parameters:
    ///   - asked: the delay that it requested, in milliseconds; `nil` for none.
    ///   - random: from 0 to 1: how much of the second half of the delay is waited.
    mutating func failed(now: Int64, asked: Int64?, random: Double) {
        let whole = min(Self.firstMilliseconds << min(failures, 20), Self.longestMilliseconds)
        failures += 1
        let wait = whole / 2 + Int64(Double(whole / 2) * random)
        retryAt = now + max(wait, min(asked ?? 0, Self.longestAskedMilliseconds))
    }
}

/// The machine's name, for the resource that spans are of.
enum MachineName {
    static var text: String {
        var bytes = [CChar](repeating: 0, count: 257)
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return "unknown" }
        return String(
            decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
