import EventLoop
import PinfoldConfiguration
import TestSupport
import Transformation
import Trust

@testable import PinfoldEngine

/// The rules of a simulated configuration, which change images: the result depends only on the
/// content's first byte, so that what a client gets can be checked.
enum SimulatedRules {
    /// What rules that write a type make of content.
    enum Outcome { case refused, unchanged, changed }

    static func outcome(of content: [UInt8], to type: ImageType) -> Outcome {
        guard let first = content.first else { return .unchanged }
        switch first {
        // Some rules refuse what others accept: it may be stored by then.
        case 0..<8: return .refused
        case 8..<100: return type == .jpeg ? .refused : .changed
        case 100..<120: return .unchanged
        default: return .changed
        }
    }

    /// The suffix of changed content.
    static func mark(_ type: ImageType) -> UInt8 { type == .jpeg ? 0x24 : 0x23 }

    static let types: [ImageType] = [.png, .jpeg]

    static func rules(to type: ImageType, _ form: CachedForm) -> ResponseRules {
        var image = ImageRules()
        image.convert = [ImageConversion(from: .webp, to: type)]
        var rules = ResponseRules()
        rules.image = image
        rules.cacheForm = form
        return rules
    }

    /// The end of the entity tags of what rules have made a type.
    static func suffix(_ type: ImageType) -> String {
        (type == .png ? suffixes.png : suffixes.jpeg) ?? "?"
    }

    private static let suffixes = (png: identity(.png), jpeg: identity(.jpeg))

    private static func identity(_ type: ImageType) -> String? {
        ResponseChecks(rules(to: type, .origin), schema: nil, images: nil).map { "-\($0.identity)" }
    }

    /// The rules of a host under one of the two sets of policies: the forms in which it is stored
    /// differ, or the translations of what is stored in one form.
    static func rules(for host: String, trust: Int) -> ResponseRules {
        switch host {
        case "a.test": rules(to: .png, trust == 0 ? .origin : .translated)
        case "b.test": rules(to: .png, .origin)
        default: rules(to: trust == 0 ? .png : .jpeg, .origin)
        }
    }

    static func entries(trust: Int) -> [HostEntry] {
        ["a.test", "b.test", "r.test"].compactMap { host in
            guard let pattern = try? HostPattern(host) else { return nil }
            var entry = HostEntry(tls: UpstreamTLS())
            entry.match = [pattern]
            entry.response = rules(for: host, trust: trust)
            entry.switchProtocols = .allow
            return entry
        }
    }
}

/// Decodes images in no time.
struct SimulatedImages: ImageTransforming {
    func transform(
        _ image: [UInt8], by rules: ImageRules
    ) throws(TransformationError) -> TranslatedContent? {
        guard let type = rules.convert.first?.to else { return nil }
        switch SimulatedRules.outcome(of: image, to: type) {
        case .refused: throw TransformationError(.responseImageRefused, "it is no image")
        case .unchanged: return nil
        case .changed:
            return TranslatedContent(
                bytes: image + [SimulatedRules.mark(type)], contentType: type.rawValue)
        }
    }
}

/// The results for content in worlds with rules, for counting.
enum SimulatedTranslation: Int, CaseIterable {
    case translated, translatedFromStore, partTranslated, confirmed, abandoned, overloaded
    case refusedFromStore
}

/// The threads on which content is worked on: each piece is done when the world says so, in any
/// order, or not taken at all.
final class SimulatedWork: @unchecked Sendable {
    weak var world: SimulatedWorld?
    /// Some pieces are not taken.
    var isShort = false
    private var waiting: [@Sendable () -> Void] = []

    func take(_ work: @escaping @Sendable () -> Void) -> Bool {
        guard let world else { return false }
        guard !isShort || world.isSettling || world.random.chance(90) else { return false }
        waiting.append(work)
        return true
    }

    /// Does one piece; returns false if none is waiting.
    func step() -> Bool {
        guard let world, !waiting.isEmpty else { return false }
        world.note("a piece of work is done", 0, waiting.count)
        waiting.remove(at: world.random.below(waiting.count))()
        return true
    }
}
