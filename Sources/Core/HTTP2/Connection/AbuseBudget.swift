import HTTPCore

/// What costs this side something and brings nobody anything, if there is much of it.
public enum Abuse: Int, CaseIterable, Sendable {
    /// The peer opened a stream and reset it.
    case resetReceived
    /// The peer sent what a stream had to be reset for.
    case resetCaused
    /// The head or the trailers of a message were malformed.
    case malformedMessage
    /// The head or the trailers of a message are beyond a limit: so they are read, and refused.
    case fieldsRefused
    /// A stream beyond the limit.
    case streamRefused
    /// A field block that was only decoded, because its stream is closed or will never be.
    case discardedFields
    case continuation
    case emptyContinuation
    /// DATA without content that does not end a stream.
    case emptyData
    /// DATA of a few bytes.
    case tinyData
    /// Padding, by the kilobyte.
    case padding
    case ping
    case settings
    case priority
    case windowUpdate
    /// A window that is opened by a few bytes.
    case tinyWindow
    case unknownFrame
    /// A frame on a closed stream.
    case lateFrame
    case goaway

    /// What one costs, in the budget's unit.
    public var cost: Int32 {
        switch self {
        case .resetReceived, .resetCaused, .malformedMessage: AbuseBudget.reset
        case .streamRefused, .emptyContinuation, .settings, .goaway: AbuseBudget.reset / 2
        case .emptyData, .ping, .tinyWindow: AbuseBudget.reset / 4
        // That the stream then ends as it should gives back most of it.
        case .fieldsRefused: AbuseBudget.reset + AbuseBudget.reset / 4
        case .discardedFields, .continuation, .unknownFrame, .lateFrame, .priority, .padding:
            AbuseBudget.reset / 8
        case .tinyData: 2
        case .windowUpdate: 1
        }
    }

    /// The name in logs, metrics and the text of GOAWAY.
    public var token: StaticString {
        switch self {
        case .resetReceived: "resets-received"
        case .resetCaused: "resets-caused"
        case .malformedMessage: "malformed-messages"
        case .fieldsRefused: "fields-refused"
        case .streamRefused: "streams-refused"
        case .discardedFields: "discarded-fields"
        case .continuation: "continuations"
        case .emptyContinuation: "empty-continuations"
        case .emptyData: "empty-data"
        case .tinyData: "tiny-data"
        case .padding: "padding"
        case .ping: "pings"
        case .settings: "settings"
        case .priority: "priorities"
        case .windowUpdate: "window-updates"
        case .tinyWindow: "tiny-windows"
        case .unknownFrame: "unknown-frames"
        case .lateFrame: "late-frames"
        case .goaway: "goaways"
        }
    }
}

/// What a connection puts up with: one sum for everything that costs and brings nothing, so that no
/// mixture of attacks gets further than any one of them.
///
/// It is refilled by time, by streams that end as they should, and by content. A peer that resets
/// streams which have lived for a while, or have been answered in part, is charged little: a
/// browser that leaves a page, and a client whose deadlines pass, do that.
public struct AbuseBudget: Sendable {
    /// The cost of a stream that is opened and reset at once.
    static let reset: Int32 = 64
    /// From empty to full by time alone, in milliseconds.
    static let refillMilliseconds: Int64 = 10_000
    /// Content of so many bytes refills one unit.
    static let contentShift = 10

    enum Level: UInt8, Comparable {
        case calm, warned, exhausted

        static func < (one: Level, other: Level) -> Bool { one.rawValue < other.rawValue }
    }

    let capacity: Int32
    private(set) var left: Int32
    private(set) var level = Level.calm
    /// Content that has refilled nothing yet, in bytes.
    private var content: Int32 = 0
    private var refilledAt: Int64
    private var counts = InlineArray<19, UInt32>(repeating: 0)

    init(resets: Int, now: Int64) {
        capacity = Int32(resets) * AbuseBudget.reset
        left = capacity
        refilledAt = now
    }

    /// How often it has been counted.
    public subscript(_ abuse: Abuse) -> UInt32 { counts[abuse.rawValue] }

    /// What has cost the most, by what one of it usually costs.
    public var chiefCause: Abuse {
        var chief = Abuse.resetReceived
        var highest: UInt64 = 0
        for abuse in Abuse.allCases {
            let cost = UInt64(self[abuse]) * UInt64(abuse.cost)
            if cost > highest { (chief, highest) = (abuse, cost) }
        }
        return chief
    }

    /// The share that has been used, from 0 to 1, for diagnostics.
    public var used: Double { Double(capacity - max(0, left)) / Double(capacity) }

    /// Counts one, at its cost or a lower one. Returns the level if it has risen.
    mutating func spend(_ abuse: Abuse, _ cost: Int32, now: Int64) -> Level? {
        counts[abuse.rawValue] &+= 1
        refill(now: now)
        left -= cost
        let reached: Level =
            left < 0 ? .exhausted : left < capacity / 4 ? .warned : .calm
        guard reached > level else { return nil }
        level = reached
        return reached
    }

    private mutating func refill(now: Int64) {
        let elapsed = now - refilledAt
        guard elapsed > 0 else { return }
        let rate = Int64(capacity)
        let units =
            min(elapsed, AbuseBudget.refillMilliseconds) * rate
            / AbuseBudget.refillMilliseconds
        guard units > 0 else { return }
        refilledAt = now
        add(Int32(truncatingIfNeeded: units))
    }

    @inline(__always)
    private mutating func add(_ units: Int32) { left = min(capacity, left &+ units) }

    /// A stream has ended as it should.
    @inline(__always)
    mutating func streamEnded() { add(AbuseBudget.reset) }

    /// Content has been sent or received.
    @inline(__always)
    mutating func moved(_ bytes: Int32) {
        content &+= bytes
        guard content >= 1 << AbuseBudget.contentShift else { return }
        add(content >> AbuseBudget.contentShift)
        content &= 1 << AbuseBudget.contentShift - 1
    }

    /// Content has been sent: for that the peer may open two windows again, and ask by PING.
    @inline(__always)
    mutating func sent(_ bytes: Int32) {
        add(4)
        moved(bytes)
    }

    /// The size of the text that ``writeText(_:)`` writes at most, in bytes.
    static let textBytes = 640

    /// What was counted: `resets-received 75, pings 3`.
    public var text: String {
        withUnsafeTemporaryAllocation(byteCount: Self.textBytes, alignment: 1) { memory in
            var writer = HeadWriter(memory)
            writeText(&writer)
            return String(decoding: memory[..<writer.count], as: UTF8.self)
        }
    }

    /// Writes the same.
    func writeText(_ writer: inout HeadWriter) {
        var isFirst = true
        for abuse in Abuse.allCases where self[abuse] > 0 {
            if !isFirst { writer.append(", ") }
            isFirst = false
            writer.append(abuse.token)
            writer.append(" ")
            writer.append(decimal: UInt64(self[abuse]))
        }
    }
}
