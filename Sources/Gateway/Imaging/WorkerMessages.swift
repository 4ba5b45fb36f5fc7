import CLinux
import ImageCodecs

/// The messages on the socket between the gateway and a decoding process: a greeting, then a
/// question and an answer for each image. Heads have a fixed size; numbers are little-endian.
///
/// The process decodes data from the network: none of its answers is believed unchecked.
enum WorkerMessage {
    /// The first bytes of each head.
    static let mark: UInt32 = 0x3149_4650
    static let greetingBytes = 8
    static let questionBytes = 64
    static let answerBytes = 40
}

extension Confinement {
    var greeting: [UInt8] {
        var head = HeadWriter()
        head.put(UInt64(WorkerMessage.mark), 4)
        head.put((filtersCalls ? 1 : 0) | (boundsMemory ? 2 : 0), 4)
        return head.bytes
    }

    init?(greeting bytes: [UInt8]) {
        var head = HeadReader(bytes)
        guard bytes.count == WorkerMessage.greetingBytes, head.take(4) == UInt64(WorkerMessage.mark)
        else { return nil }
        let bits = head.take(4)
        guard bits < 4 else { return nil }
        self.init(filtersCalls: bits & 1 != 0, boundsMemory: bits & 2 != 0)
    }
}

/// A plan, and how many bytes of an image follow.
struct WorkerQuestion: Equatable {
    var plan: ImagePlan
    var count: Int

    var head: [UInt8] {
        var head = HeadWriter()
        head.put(UInt64(WorkerMessage.mark), 4)
        head.put(plan.accepted.reduce(0) { $0 | 1 << UInt64($1.rawValue) }, 1)
        for kind in ImageKind.allCases {
            head.put(plan.conversions[kind].map { UInt64($0.rawValue) + 1 } ?? 0, 1)
        }
        head.put(0, 2)
        head.put(UInt64(plan.maximumFrames), 4)
        head.put(UInt64(plan.scale?.width ?? 0), 4)
        head.put(UInt64(plan.scale?.height ?? 0), 4)
        head.put(UInt64(plan.maximumBytes), 8)
        head.put(UInt64(plan.maximumPixels), 8)
        head.put(UInt64(plan.maximumResultBytes), 8)
        head.put(UInt64(count), 8)
        return head.bytes + [UInt8](repeating: 0, count: WorkerMessage.questionBytes - 56)
    }

    init(plan: ImagePlan, count: Int) {
        self.plan = plan
        self.count = count
    }

    init?(head bytes: [UInt8]) {
        var head = HeadReader(bytes)
        guard bytes.count == WorkerMessage.questionBytes, head.take(4) == UInt64(WorkerMessage.mark)
        else { return nil }
        plan = ImagePlan()
        let accepted = head.take(1)
        plan.accepted = Set(ImageKind.allCases.filter { accepted & 1 << UInt64($0.rawValue) != 0 })
        for kind in ImageKind.allCases {
            let value = head.take(1)
            if value > 0 { plan.conversions[kind] = ImageKind(rawValue: UInt8(value - 1)) }
        }
        _ = head.take(2)
        plan.maximumFrames = Int(head.take(4))
        let (width, height) = (Int(head.take(4)), Int(head.take(4)))
        if width > 0, height > 0 { plan.scale = (width, height) }
        guard let maximumBytes = Int(exactly: head.take(8)),
            let maximumPixels = Int(exactly: head.take(8)),
            let maximumResultBytes = Int(exactly: head.take(8)),
            let count = Int(exactly: head.take(8)), count <= maximumBytes
        else { return nil }
        plan.maximumBytes = maximumBytes
        plan.maximumPixels = maximumPixels
        plan.maximumResultBytes = maximumResultBytes
        self.count = count
    }
}

/// The head of an answer.
enum WorkerAnswer: Equatable {
    /// The image is fine as it is.
    case unchanged
    /// Another image of this many bytes follows.
    case written(ImageKind, count: Int)
    case failed(ImageCodecError)

    var head: [UInt8] {
        var head = HeadWriter()
        head.put(UInt64(WorkerMessage.mark), 4)
        let (code, kind, numbers): (UInt64, ImageKind?, [Int]) =
            switch self {
            case .unchanged: (0, nil, [])
            case .written(let kind, let count): (1, kind, [count])
            case .failed(let failure): failure.fields
            }
        head.put(code, 2)
        head.put(kind.map { UInt64($0.rawValue) } ?? 0, 2)
        for number in (numbers + [0, 0, 0]).prefix(3) { head.put(UInt64(max(0, number)), 8) }
        head.put(0, 8)
        return head.bytes
    }

    init?(head bytes: [UInt8]) {
        var head = HeadReader(bytes)
        guard bytes.count == WorkerMessage.answerBytes, head.take(4) == UInt64(WorkerMessage.mark)
        else { return nil }
        let code = head.take(2)
        guard let kind = ImageKind(rawValue: UInt8(truncatingIfNeeded: head.take(2))) else {
            return nil
        }
        let numbers = (0..<3).compactMap { _ in Int(exactly: head.take(8)) }
        guard numbers.count == 3 else { return nil }
        switch code {
        case 0: self = .unchanged
        case 1: self = .written(kind, count: numbers[0])
        default:
            guard let failure = ImageCodecError(code: code, kind, numbers) else { return nil }
            self = .failed(failure)
        }
    }
}

extension ImageCodecError {
    /// Its number, from 2, and its associated values.
    fileprivate var fields: (UInt64, ImageKind?, [Int]) {
        switch self {
        case .notAnImage: (2, nil, [])
        case .truncated(let kind): (3, kind, [])
        case .damaged(let kind): (4, kind, [])
        case .unsupported(let kind): (5, kind, [])
        case .notAccepted(let kind): (6, kind, [])
        case .notWritable(let kind): (7, kind, [])
        case .tooManyBytes(let limit): (8, nil, [limit])
        case .tooManyPixels(let width, let height, let limit): (9, nil, [width, height, limit])
        case .tooManyFrames(let frames, let limit): (10, nil, [frames, limit])
        case .resultTooLarge(let limit): (11, nil, [limit])
        case .noMemory: (12, nil, [])
        }
    }

    fileprivate init?(code: UInt64, _ kind: ImageKind, _ numbers: [Int]) {
        switch code {
        case 2: self = .notAnImage
        case 3: self = .truncated(kind)
        case 4: self = .damaged(kind)
        case 5: self = .unsupported(kind)
        case 6: self = .notAccepted(kind)
        case 7: self = .notWritable(kind)
        case 8: self = .tooManyBytes(limit: numbers[0])
        case 9:
            self = .tooManyPixels(width: numbers[0], height: numbers[1], limit: numbers[2])
        case 10: self = .tooManyFrames(numbers[0], limit: numbers[1])
        case 11: self = .resultTooLarge(limit: numbers[0])
        case 12: self = .noMemory
        default: return nil
        }
    }
}

private struct HeadWriter {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ value: UInt64, _ count: Int) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }
}

private struct HeadReader {
    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The next number; missing bytes are 0.
    mutating func take(_ count: Int) -> UInt64 {
        let part = bytes.dropFirst(offset).prefix(count)
        offset += count
        return part.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
