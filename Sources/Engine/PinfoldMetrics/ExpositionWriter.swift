/// The type of a metric family, as named by both formats.
public enum MetricKind: Sendable {
    case counter, gauge, histogram
    /// Constant facts as labels of a sample with the value 1. In the text format it is a gauge.
    case info

    var name: StaticString {
        switch self {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        case .info: "info"
        }
    }
}

/// Appends metric families to a buffer, in one of the formats.
///
/// A family is opened with `family` and its samples follow; families may not be opened twice. Names
/// are given without the counters' `_total` and the infos' `_info`: the writer adds them where the
/// format requires them.
public struct ExpositionWriter: Sendable {
    private let format: ExpositionFormat
    private var bytes: [UInt8] = []
    private var name: StaticString = ""
    private var kind: MetricKind = .gauge
    /// Whether the sample being written has labels.
    private var hasLabels = false
    private var prefix: [UInt8] = []

    /// An empty exposition.
    /// - Parameter expected: about how many bytes it will have.
    public init(format: ExpositionFormat, expected: Int = 32 * 1024) {
        self.format = format
        bytes.reserveCapacity(expected)
    }

    /// Opens a family. `unit` is the name's ending (`seconds`, `bytes`), where it has one.
    public mutating func family(
        _ name: StaticString, _ kind: MetricKind, help: StaticString, unit: StaticString? = nil
    ) {
        self.name = name
        self.kind = kind
        header("# HELP ")
        append(escaping: help, quotes: format == .openMetrics)
        append("\n")
        header("# TYPE ")
        append(kind == .info && format == .text ? MetricKind.gauge.name : kind.name)
        append("\n")
        if let unit, format == .openMetrics {
            header("# UNIT ")
            append(unit)
            append("\n")
        }
    }

    /// A sample of the open family; `labels` as `LabelText` renders them.
    public mutating func sample(_ labels: LabelText, _ value: UInt64) {
        begin(labels)
        end(value)
    }

    /// A sample of the open family without labels.
    public mutating func sample(_ value: UInt64) {
        sample(.none, value)
    }

    /// A sample of the open family whose value may be negative.
    public mutating func sample(_ labels: LabelText = .none, signed value: Int64) {
        begin(labels)
        end(signed: value)
    }

    /// A sample of the open family, given in millionths.
    public mutating func sample(_ labels: LabelText = .none, millionths value: UInt64) {
        begin(labels)
        end(millionths: value)
    }

    // MARK: A sample in parts, whose labels need no separate text

    /// Begins a sample of the open family, with the labels that it shares with others; ``label``
    /// adds to them, and one of the `end`s is what follows.
    mutating func begin(_ labels: LabelText) {
        begin(sampleSuffix, labels)
    }

    /// Adds a label to the sample.
    mutating func label(_ name: StaticString, _ value: StaticString) {
        openLabel(name)
        value.withUTF8Buffer { LabelText.escape($0, quotes: true, into: &bytes) }
        append("\"")
    }

    /// Adds a label to the sample.
    mutating func label(_ name: StaticString, _ value: String) {
        openLabel(name)
        var value = value
        value.withUTF8 { LabelText.escape($0, quotes: true, into: &bytes) }
        append("\"")
    }

    /// Adds a label whose value is a number to the sample.
    mutating func label(_ name: StaticString, number: UInt64) {
        openLabel(name)
        append(decimal: number)
        append("\"")
    }

    /// Ends the sample with its value.
    mutating func end(_ value: UInt64) {
        closeLabels()
        append(decimal: value)
        append("\n")
    }

    /// Ends the sample with a value that may be negative.
    mutating func end(signed value: Int64) {
        closeLabels()
        if value < 0 { append("-") }
        append(decimal: value.magnitude)
        append("\n")
    }

    /// Ends the sample with a value given in millionths.
    mutating func end(millionths value: UInt64) {
        closeLabels()
        append(millionths: value)
        append("\n")
    }

    private mutating func begin(_ suffix: StaticString, _ labels: LabelText) {
        append(name)
        append(suffix)
        hasLabels = !labels.isEmpty
        guard hasLabels else { return }
        append("{")
        append(labels.bytes)
    }

    private mutating func openLabel(_ name: StaticString) {
        append(hasLabels ? "," : "{")
        hasLabels = true
        append(name)
        append("=\"")
    }

    private mutating func closeLabels() {
        append(hasLabels ? "} " : " ")
    }

    /// A histogram's samples: cumulative buckets, sum and count.
    mutating func histogram(_ labels: LabelText, _ totals: HistogramTotals, _ scale: HistogramScale)
    {
        // What all buckets' lines begin with.
        prefix.removeAll(keepingCapacity: true)
        name.withUTF8Buffer { prefix.append(contentsOf: $0) }
        prefix += "_bucket{".utf8
        if !labels.isEmpty {
            prefix += labels.bytes
            prefix.append(UInt8(ascii: ","))
        }
        prefix += "le=\"".utf8
        let cumulative = appendBuckets(totals, scale)
        begin("_sum", labels)
        if scale.inMillionths { end(millionths: totals.sum) } else { end(totals.sum) }
        begin("_count", labels)
        end(cumulative)
    }

    /// Appends the lines of a histogram's buckets, which are most of an exposition: in one piece.
    /// Returns the number of all values.
    private mutating func appendBuckets(
        _ totals: HistogramTotals, _ scale: HistogramScale
    ) -> UInt64 {
        let longest = prefix.count + scale.longestEnding + DecimalText.longest + 1
        let room = longest * (scale.count + 1)
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: room) { lines in
            var cumulative: UInt64 = 0
            var count = 0
            func put(_ text: [UInt8]) {
                text.withUnsafeBufferPointer { text in
                    _ = UnsafeMutableBufferPointer(rebasing: lines[count...])
                        .update(fromContentsOf: text)
                }
                count += text.count
            }
            for bucket in 0...scale.count {
                cumulative &+= totals.count(bucket: bucket)
                put(prefix)
                put(scale.endings[bucket])
                count += DecimalText.write(
                    cumulative, to: UnsafeMutableBufferPointer(rebasing: lines[count...]))
                lines[count] = UInt8(ascii: "\n")
                count += 1
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: lines[..<count]))
            return cumulative
        }
    }

    /// Ends the exposition and returns its bytes.
    public consuming func finish() -> [UInt8] {
        if format == .openMetrics { append("# EOF\n") }
        return bytes
    }

    private var sampleSuffix: StaticString {
        switch kind {
        case .counter: "_total"
        case .info: "_info"
        case .gauge, .histogram: ""
        }
    }

    private mutating func header(_ start: StaticString) {
        append(start)
        append(name)
        // OpenMetrics names a family without its samples' suffix, the text format with it.
        if format == .text { append(sampleSuffix) }
        append(" ")
    }

    // MARK: Bytes

    private mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    private mutating func append(_ text: [UInt8]) {
        bytes.append(contentsOf: text)
    }

    private mutating func append(escaping text: StaticString, quotes: Bool) {
        text.withUTF8Buffer { LabelText.escape($0, quotes: quotes, into: &bytes) }
    }

    private mutating func append(decimal value: UInt64) {
        DecimalText.append(value, to: &bytes)
    }

    private mutating func append(millionths value: UInt64) {
        DecimalText.append(millionths: value, to: &bytes)
    }
}

/// A histogram's bounds as values of the label `le`, created once for all series of a family.
struct HistogramScale {
    /// What follows `le="` in the line of each bucket, up to the value; the last bound is `+Inf`.
    let endings: [[UInt8]]
    let longestEnding: Int
    /// The histogram's values, and its bounds, are in millionths of the unit.
    let inMillionths: Bool

    /// How many bounds there are but for the last.
    var count: Int { endings.count - 1 }

    /// A bound is a number with a decimal point, as OpenMetrics requires; the text format uses the
    /// same, so that a series has the same labels in both formats.
    init(_ buckets: HistogramBuckets, inMillionths: Bool) {
        self.inMillionths = inMillionths
        endings = (0...buckets.count).map { bucket in
            guard let bound = buckets.bound(bucket) else { return Array("+Inf\"} ".utf8) }
            var text: [UInt8] = []
            if inMillionths {
                DecimalText.append(millionths: bound, to: &text)
            } else {
                DecimalText.append(bound, to: &text)
                text += ".0".utf8
            }
            return text + Array("\"} ".utf8)
        }
        longestEnding = endings.map(\.count).max() ?? 0
    }
}

/// Numbers as both formats write them.
enum DecimalText {
    /// The most digits of a number.
    static var longest: Int { 20 }

    static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        if value < 10 {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value))
            return
        }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: longest) { digits in
            let count = write(value, to: digits)
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[..<count]))
        }
    }

    /// Writes a number to memory that has room for it, and returns its digits.
    static func write(_ value: UInt64, to memory: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var count = 1
        var rest = value / 10
        while rest > 0 {
            count += 1
            rest /= 10
        }
        rest = value
        for index in (0..<count).reversed() {
            memory[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        return count
    }

    /// A number of millionths as a decimal fraction, without trailing zeros but with one digit
    /// after the point.
    static func append(millionths value: UInt64, to bytes: inout [UInt8]) {
        append(value / 1_000_000, to: &bytes)
        bytes.append(UInt8(ascii: "."))
        var rest = value % 1_000_000
        var unit: UInt64 = 100_000
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / unit))
            rest %= unit
            unit /= 10
        } while rest > 0
    }
}

/// Labels as they stand between the braces of a sample, already escaped.
public struct LabelText: Sendable, Equatable {
    /// The text's bytes.
    private(set) var bytes: [UInt8]

    /// No labels.
    public static let none = LabelText(bytes: [])

    var isEmpty: Bool { bytes.isEmpty }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    /// Labels written out: the text must be valid as it is.
    public init(_ text: StaticString) {
        bytes = text.withUTF8Buffer { Array($0) }
    }

    /// One label.
    public init(_ name: StaticString, _ value: String) {
        bytes = []
        append(name, value)
    }

    /// One label.
    public init(_ name: StaticString, _ value: StaticString) {
        bytes = []
        append(name, value)
    }

    /// Adds a label behind the ones there are.
    public mutating func append(_ name: StaticString, _ value: String) {
        open(name)
        var value = value
        value.withUTF8 { LabelText.escape($0, quotes: true, into: &bytes) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Adds a label behind the ones there are.
    public mutating func append(_ name: StaticString, _ value: StaticString) {
        open(name)
        value.withUTF8Buffer { LabelText.escape($0, quotes: true, into: &bytes) }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func open(_ name: StaticString) {
        if !bytes.isEmpty { bytes.append(UInt8(ascii: ",")) }
        name.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "="))
        bytes.append(UInt8(ascii: "\""))
    }

    /// Escapes a backslash, a line feed and, with `quotes`, a quotation mark, as both formats do in
    /// label values and OpenMetrics does in help texts.
    static func escape(
        _ text: UnsafeBufferPointer<UInt8>, quotes: Bool, into bytes: inout [UInt8]
    ) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\n"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(UInt8(ascii: "n"))
            case UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case UInt8(ascii: "\"") where quotes:
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            default:
                bytes.append(byte)
            }
        }
    }
}
