import Files
import Locking
import SharedCache
import Threads

/// What the next process has to know: up to where this gateway has carried out what others have
/// purged, so that it catches up and need not have everything confirmed by its origins; and whether
/// something was purged or removed here that the engine does not know.
struct FleetRecord: Sendable, Equatable {
    struct Positions: Sendable, Equatable {
        var purges: PurgePosition
        var removed: PurgePosition
    }

    /// `nil` if it has followed no stream.
    var positions: Positions?
    /// Whether the engine has yet to be told of something.
    var hasLost = false

    private static let form = "pinfold-fleet-1"
    private static let maximumBytes = 256

    init(positions: Positions? = nil, hasLost: Bool = false) {
        self.positions = positions
        self.hasLost = hasLost
    }

    /// Reads a record; `nil` for anything else.
    init?(_ text: String) {
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 5, words[0] == Self.form, let epoch = UInt64(words[1]),
            let purges = PurgePosition(epoch: epoch, entry: Array(words[2].utf8)),
            let removed = PurgePosition(epoch: epoch, entry: Array(words[3].utf8)),
            words[4] == "told" || words[4] == "untold"
        else { return nil }
        // No generation begins with eight zeros.
        positions = epoch == 0 ? nil : Positions(purges: purges, removed: removed)
        hasLost = words[4] == "untold"
    }

    var text: String {
        let beginning = PurgePosition.beginning(of: 0)
        let places = positions ?? Positions(purges: beginning, removed: beginning)
        let entries = [places.purges, places.removed].map {
            String(decoding: $0.entry, as: UTF8.self)
        }
        return "\(Self.form) \(places.purges.epoch) \(entries.joined(separator: " ")) "
            + "\(hasLost ? "untold" : "told")\n"
    }

    /// `nil` if there is none, or none that can be read.
    init?(at path: String) {
        guard let bytes = try? OpenFile(path, followsLinks: false).contents(most: Self.maximumBytes)
        else { return nil }
        self.init(String(decoding: bytes, as: UTF8.self))
    }

    /// A failure leaves the one before, which is no harm: from an earlier position, more is carried
    /// out again.
    func write(to path: String) {
        guard let file = try? UnfinishedFile(Array(text.utf8), for: path, mode: 0o600) else {
            return
        }
        do throws(FileError) { try file.rename() } catch { file.discard() }
    }
}

/// Writes the record, on a thread of its own: a slow disk holds up nobody.
final class FleetRecordWriter: Sendable {
    private struct State {
        var record: FleetRecord
        var written: FleetRecord
        var isClosed = false
        /// Those who wait until it is written.
        var waiting: [@Sendable () -> Void] = []

        var isDone: Bool { record == written && waiting.isEmpty }
    }

    private let state: Monitor<State>
    private let path: String
    private let thread = Locked<Thread?>(nil)

    /// Reads what there is. Without a thread nothing is ever written.
    init(path: String) {
        self.path = path
        let found = FleetRecord(at: path) ?? FleetRecord()
        state = Monitor(State(record: found, written: found))
        let started = try? Thread(name: "fleet-record") { [self] in work() }
        thread.withLock { $0 = started }
    }

    var record: FleetRecord { state.withLock { $0.record } }

    /// Has it written.
    func change(_ body: (inout FleetRecord) -> Void) {
        let isChanged = state.withLock { state in
            body(&state.record)
            return state.record != state.written
        }
        if isChanged { state.signal() }
    }

    /// Calls the completion when it is written.
    func whenWritten(_ completion: @escaping @Sendable () -> Void) {
        guard thread.withLock({ $0 != nil }) else { return completion() }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.waiting.append(completion) }
            return state.isClosed
        }
        if isClosed { completion() } else { state.signal() }
    }

    /// Writes what is to be written, and ends the thread.
    func close() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
        guard let thread = thread.withLock({ $0.take() }) else { return }
        if !thread.isCurrent { thread.join() }
    }

    private func work() {
        while true {
            let next: FleetRecord? = state.wait { state in
                if !state.isDone { return .done(state.record) }
                return state.isClosed ? .done(nil) : .signal
            }
            guard let next else { return }
            if next != state.withLock({ $0.written }) { next.write(to: path) }
            let waiting = state.withLock { state in
                state.written = next
                defer { state.waiting = [] }
                return state.waiting
            }
            for completion in waiting { completion() }
        }
    }
}
