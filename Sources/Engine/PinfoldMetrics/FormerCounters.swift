/// The last values of another process's counters and histograms, on top of which this process's
/// count: to whoever scrapes them, a restart that hands over is none.
///
/// It is taken from that process's exposition, and added to ours as text, whatever families there
/// are: that of another version may have others. Gauges are of one process alone, and so are the
/// families whose names do not begin with `pinfold_`.
public struct FormerCounters: Sendable {
    /// A sample: its name with its labels, and its value.
    private struct Sample {
        var key: ArraySlice<UInt8>
        var value: SampleValue
    }

    /// By the family's name, without `_total`; in their order.
    private var families: [ArraySlice<UInt8>: [Sample]] = [:]

    /// Parses an exposition in the text format. What is not understood is left out.
    public init(_ text: [UInt8]) {
        var family: ArraySlice<UInt8>?
        for line in text.split(separator: UInt8(ascii: "\n")) {
            switch ExpositionLine(line) {
            case .type(let name, let isCumulative):
                family = isCumulative && name.starts(with: "pinfold_".utf8) ? name : nil
            case .sample(let key, let value):
                guard let family, let value = SampleValue(value) else { continue }
                families[family, default: []].append(Sample(key: key, value: value))
            case .other: continue
            }
        }
    }

    /// Whether there are none.
    public var isEmpty: Bool { families.isEmpty }

    /// An exposition, in either format, with these values added. Series that it does not have
    /// follow those of their family; families that it does not have are left out.
    public func added(to exposition: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(exposition.count + exposition.count / 8)
        var values: [ArraySlice<UInt8>: SampleValue] = [:]
        var family: ArraySlice<UInt8>?
        func endFamily() {
            guard let ending = family, !values.isEmpty else { return }
            for sample in families[ending] ?? [] where values[sample.key] != nil {
                result += sample.key
                result.append(UInt8(ascii: " "))
                sample.value.append(to: &result)
                result.append(UInt8(ascii: "\n"))
            }
        }
        for line in exposition.split(separator: UInt8(ascii: "\n")) {
            switch ExpositionLine(line) {
            case .type(let name, _):
                family = name
                values = [:]
                for sample in families[name] ?? [] { values[sample.key] = sample.value }
            case .sample(let key, let text):
                guard !values.isEmpty, let former = values.removeValue(forKey: key),
                    let value = SampleValue(text)
                else { break }
                result += key
                result.append(UInt8(ascii: " "))
                (value + former).append(to: &result)
                result.append(UInt8(ascii: "\n"))
                continue
            case .other:
                // The help of the next family, or the end.
                if line.starts(with: "# HELP ".utf8) || line.starts(with: "# EOF".utf8) {
                    endFamily()
                    family = nil
                    values = [:]
                }
            }
            result += line
            result.append(UInt8(ascii: "\n"))
        }
        endFamily()
        return result
    }
}

/// One line of an exposition.
private enum ExpositionLine {
    /// The type of a family, whose name is without `_total`.
    case type(ArraySlice<UInt8>, isCumulative: Bool)
    case sample(ArraySlice<UInt8>, ArraySlice<UInt8>)
    case other

    init(_ line: ArraySlice<UInt8>) {
        if line.starts(with: "# TYPE ".utf8) {
            let words = line.dropFirst(7).split(separator: UInt8(ascii: " "))
            guard words.count == 2 else {
                self = .other
                return
            }
            let isTotal = words[0].reversed().starts(with: "_total".utf8.reversed())
            self = .type(
                isTotal ? words[0].dropLast(6) : words[0],
                isCumulative: words[1].elementsEqual("counter".utf8)
                    || words[1].elementsEqual("histogram".utf8))
        } else if line.first != UInt8(ascii: "#"),
            let space = line.lastIndex(of: UInt8(ascii: " "))
        {
            self = .sample(line[..<space], line[(space + 1)...])
        } else {
            self = .other
        }
    }
}

/// The value of a counter: a whole number, or one with at most six decimals.
private struct SampleValue {
    private var whole: UInt64
    private var millionths: UInt64

    /// `nil` for anything else.
    init?(_ text: ArraySlice<UInt8>) {
        let point = text.firstIndex(of: UInt8(ascii: ".")) ?? text.endIndex
        guard let whole = Self.number(text[..<point]) else { return nil }
        self.whole = whole
        millionths = 0
        guard point < text.endIndex else { return }
        let decimals = text[(point + 1)...]
        guard (1...6).contains(decimals.count), let number = Self.number(decimals) else {
            return nil
        }
        millionths = (decimals.count..<6).reduce(number) { number, _ in number * 10 }
    }

    private static func number(_ text: ArraySlice<UInt8>) -> UInt64? {
        guard !text.isEmpty, text.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")) ~= $0 })
        else { return nil }
        return UInt64(String(decoding: text, as: UTF8.self))
    }

    static func + (one: SampleValue, other: SampleValue) -> SampleValue {
        var sum = one
        sum.millionths += other.millionths
        sum.whole = sum.whole &+ other.whole &+ sum.millionths / 1_000_000
        sum.millionths %= 1_000_000
        return sum
    }

    func append(to bytes: inout [UInt8]) {
        bytes += String(whole).utf8
        guard millionths > 0 else { return }
        var decimals = String(millionths)
        decimals = String(repeating: "0", count: 6 - decimals.utf8.count) + decimals
        while decimals.hasSuffix("0") { decimals.removeLast() }
        bytes.append(UInt8(ascii: "."))
        bytes += decimals.utf8
    }
}
