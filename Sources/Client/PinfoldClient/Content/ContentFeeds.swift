import Locking
import Threads

/// Content from a source that may block, read by threads that may block.
final class SourceFeed: ContentFeed {
    /// An open source. It is used only by whoever has taken it out of the state.
    private final class OpenSource: @unchecked Sendable {
        var source: any ByteSource

        init(_ source: any ByteSource) { self.source = source }
    }

    private struct State {
        /// `nil` if there is no source, or it is being read.
        var held: OpenSource?
        var read: Int64 = 0
        var isClosed = false
    }

    /// The size of a part in bytes.
    private static let partBytes = 64 << 10

    private let state = Locked(State())
    private let readers: ThreadPool
    private let open: @Sendable () throws -> any ByteSource
    private let length: Int64?
    let pauseMilliseconds: Int64

    /// - Parameter length: The exact length of the content in bytes, or `nil` for any length.
    init(
        length: Int64?, pauseMilliseconds: Int64, on readers: ThreadPool,
        open: @escaping @Sendable () throws -> any ByteSource
    ) {
        self.length = length
        self.pauseMilliseconds = pauseMilliseconds
        self.readers = readers
        self.open = open
    }

    func next(_ deliver: @escaping @Sendable (ContentPart) -> Void) {
        let isTaken = readers.run { [self] in deliver(read()) }
        if !isTaken {
            deliver(.failed(ClientError(.outOfResources, "too many sources are being read")))
        }
    }

    private func read() -> ContentPart {
        do { return try readPart() } catch { return .failed(error) }
    }

    /// No lock is held while the source is read, because that may take forever. There is only one
    /// reader at a time, and it releases the source if the feed was closed in the meantime.
    private func readPart() throws -> ContentPart {
        let (held, before, isClosed) = state.withLock { state in
            (state.held.take(), state.read, state.isClosed)
        }
        let wanted = length.map { min(Int64(Self.partBytes), $0 - before) }
        guard !isClosed, wanted != 0 else { return .end }
        let source = if let held { held } else { OpenSource(try open()) }
        var bytes = [UInt8](repeating: 0, count: Int(wanted ?? Int64(Self.partBytes)))
        let count = try bytes.withUnsafeMutableBytes { try source.source.read(into: $0) }
        let read = before + Int64(count)
        state.withLock { state in
            guard !state.isClosed else { return }
            (state.held, state.read) = (source, read)
        }
        if count > 0 {
            bytes.removeLast(bytes.count - count)
            return .bytes(bytes)
        }
        if let length, read < length {
            throw MultipartError.length(expected: length, found: read)
        }
        return .end
    }

    func close() {
        let isHeld = state.withLock { state in
            state.isClosed = true
            return state.held != nil
        }
        // Not on the caller's thread, because closing may wait for the disk.
        if isHeld { _ = readers.run { [self] in state.withLock { $0.held = nil } } }
    }
}

/// Content from an asynchronous sequence, which a task reads part by part.
final class SequenceFeed: ContentFeed {
    private enum Demand {
        /// No part is requested.
        case none
        case asked(@Sendable (ContentPart) -> Void)
        /// The task waits for a part to be requested.
        case waiting(CheckedContinuation<(@Sendable (ContentPart) -> Void)?, Never>)
        case closed
    }

    private enum Reading {
        /// Starts when the first part is requested.
        case ready(@Sendable (SequenceFeed) async -> Void)
        case running(Task<Void, Never>)
        case closed
    }

    private let demand = Locked(Demand.none)
    private let reading: Locked<Reading>

    convenience init<Parts: AsyncSequence & Sendable>(_ parts: Parts)
    where Parts.Element == [UInt8] {
        self.init(making: { parts })
    }

    /// - Parameter make: Creates the sequence when its first part is requested.
    init<Parts: AsyncSequence & Sendable>(making make: @escaping @Sendable () throws -> Parts)
    where Parts.Element == [UInt8] {
        reading = Locked(
            .ready { feed in
                var iterator: Parts.AsyncIterator?
                while let deliver = await feed.asked() {
                    do {
                        var parts = try iterator ?? make().makeAsyncIterator()
                        guard let part = try await parts.next() else { return deliver(.end) }
                        iterator = parts
                        deliver(.bytes(part))
                    } catch {
                        return deliver(.failed(error))
                    }
                }
            })
    }

    private func begin() {
        reading.withLock { reading in
            guard case .ready(let read) = reading else { return }
            reading = .running(Task { await read(self) })
        }
    }

    /// Waits until a part is requested. Returns `nil` if none will be.
    private func asked() async -> (@Sendable (ContentPart) -> Void)? {
        await withCheckedContinuation { continuation in
            let result = demand.withLock { demand -> (@Sendable (ContentPart) -> Void)?? in
                switch demand {
                case .asked(let deliver):
                    demand = .none
                    return .some(deliver)
                case .closed: return .some(nil)
                case .none, .waiting:
                    demand = .waiting(continuation)
                    return nil
                }
            }
            if let result { continuation.resume(returning: result) }
        }
    }

    func next(_ deliver: @escaping @Sendable (ContentPart) -> Void) {
        begin()
        let waiter = demand.withLock { demand in
            switch demand {
            case .waiting(let continuation):
                demand = .none
                return continuation
                    as CheckedContinuation<
                        (@Sendable (ContentPart) -> Void)?, Never
                    >?
            case .none, .asked:
                demand = .asked(deliver)
                return nil
            case .closed: return nil
            }
        }
        waiter?.resume(returning: deliver)
    }

    func close() {
        let waiter = demand.withLock { demand in
            defer { demand = .closed }
            if case .waiting(let continuation) = demand {
                return continuation
                    as CheckedContinuation<
                        (@Sendable (ContentPart) -> Void)?, Never
                    >?
            }
            return nil
        }
        waiter?.resume(returning: nil)
        let task = reading.withLock { reading -> Task<Void, Never>? in
            defer { reading = .closed }
            if case .running(let task) = reading { return task }
            return nil
        }
        task?.cancel()
    }
}

/// Content with a declared length. A different length is an error, because the server would take
/// any excess as the beginning of the next request.
final class MeasuredFeed: ContentFeed {
    private let feed: any ContentFeed
    private let length: Int64?
    private let given = Locked<Int64>(0)

    init(_ feed: any ContentFeed, length: Int64?) {
        self.feed = feed
        self.length = length
    }

    func next(_ deliver: @escaping @Sendable (ContentPart) -> Void) {
        guard let length else { return feed.next(deliver) }
        feed.next { [given] part in
            let count = given.withLock { given in
                if case .bytes(let bytes) = part { given += Int64(bytes.count) }
                return given
            }
            let isEnd = if case .end = part { true } else { false }
            guard count > length || isEnd && count < length else { return deliver(part) }
            deliver(.failed(MultipartError.length(expected: length, found: count)))
        }
    }

    func close() { feed.close() }
}
