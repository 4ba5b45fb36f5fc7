import AccessPolicy
import HTTPCore

/// What a reader finds, as texts.
struct Recording: DomainListSink, Equatable {
    var entries: [String] = []

    mutating func add(_ name: Span<UInt8>, _ reach: DomainReach) {
        let text = name.indices.reduce(into: "") {
            $0.unicodeScalars.append(Unicode.Scalar(name[$1]))
        }
        switch reach {
        case .nameAlone: entries.append("=\(text)")
        case .nameAndBelow: entries.append(text)
        case .below: entries.append("*.\(text)")
        case .exception: entries.append("!\(text)")
        }
    }

    mutating func add(_ network: IPNetwork, isException: Bool) {
        entries.append((isException ? "!" : "") + "\(network)")
    }
}

/// What a text has, all at once and byte by byte, which must be the same.
func read(
    _ text: String, as format: DomainListFormat = .auto
) -> (entries: [String], report: DomainListReport, isSameByteByByte: Bool) {
    read(Array(text.utf8), as: format)
}

func read(
    _ bytes: [UInt8], as format: DomainListFormat = .auto
) -> (entries: [String], report: DomainListReport, isSameByteByByte: Bool) {
    var whole = Recording()
    var reader = DomainListReader(format)
    reader.read(bytes.span, into: &whole)
    let report = reader.finish(into: &whole)
    var single = Recording()
    var other = DomainListReader(format)
    for byte in bytes { other.read([byte].span, into: &single) }
    let isSame = other.finish(into: &single) == report && single == whole
    return (whole.entries, report, isSame)
}

extension DomainListReport {
    /// `4 notAName` for each of the first lines that mean nothing.
    var problems: [String] { firstMeaningless.map { "\($0.number) \($0.problem)" } }
}

extension DomainListKey {
    /// The same in every run.
    static let fixed = {
        var generator = Numbers(state: 1)
        return DomainListKey(using: &generator)
    }()
}

/// Numbers that look random and are the same in every run (SplitMix64).
struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

/// A list of files, each with a text.
func list(
    _ texts: String..., format: DomainListFormat = .auto, key: DomainListKey = .fixed
) -> DomainList {
    var builder = DomainListBuilder(key: key, bytes: texts.reduce(0) { $0 + $1.utf8.count })
    for text in texts {
        var reader = DomainListReader(format)
        reader.read(text.utf8.span, into: &builder)
        _ = reader.finish(into: &builder)
        builder.endFile()
    }
    return builder.finish()
}

extension DomainList {
    func contains(_ host: String) -> Bool { contains(host: host.utf8.span) }
}
