import TestSupport
import Testing

@testable import Gateway

/// The loader's contract for any bytes: a snapshot, or typed errors.
@Suite("Any file and any options")
struct FuzzTests {
    private static let rounds = 300

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `mutated configurations load or cause errors`(seed: UInt64) throws {
        try withFullConfiguration { folder in
            var random = SeededRandom(seed: seed)
            let original = Array(fullConfiguration.utf8)
            let loader = ConfigurationLoader(
                environment: environment(with: ["A": "a variable: [x]"]))
            for _ in 0..<Self.rounds {
                let text = mutated(original, &random)
                do {
                    let loaded = try loader.load(text: text, name: folder + "/gateway.yaml")
                    let snapshot = loaded.snapshot
                    let again = try loader.load(
                        text: Array(snapshot.effectiveYAML().utf8), name: "/elsewhere/gateway.yaml")
                    #expect(again.snapshot == snapshot)
                    for warning in loaded.warnings {
                        #expect(!warning.description.utf8.contains(0x0A))
                    }
                } catch let error as ConfigurationErrors {
                    #expect(!error.errors.isEmpty)
                    for error in error.errors {
                        #expect(!error.problem.isEmpty)
                        #expect(!error.description.utf8.contains(0x0A))
                    }
                }
            }
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `options with any text load or cause errors`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let texts = [
            "", "=", "127.0.0.1:1=http://a", "[::1]:0", "localhost:0", "*.a", "10.0.0.0/8",
            "system",
            "auto", "~", "0.0.0.0:80", "a=b=c", "127.0.0.1:0", "9999999999999999999", "\u{0}",
            "ä:1",
        ]
        func some() -> [String] {
            (0..<Int.random(in: 0...3, using: &random)).compactMap { _ in
                texts.randomElement(using: &random)
            }
        }
        for _ in 0..<Self.rounds {
            var overlay = CommandLineOverlay()
            overlay.listen = some()
            overlay.reverse = some()
            overlay.admin = some().first
            overlay.allowDestination = some()
            overlay.roots = some()
            overlay.cachePath = some().first
            overlay.workers = some().first
            _ = try? loadDefaults(overlay: overlay)
        }
    }

    /// One to six changes: bytes replaced, removed, doubled or moved, or pieces of YAML inserted.
    private func mutated(_ original: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
        let pieces = [
            "&a ", "*a", "? ", ": ", "- ", "[", "]", "{", "}", "\"", "'", "|\n", ">\n", "!!int ",
            "!<x> ", "#", "\n", "\t", "~", "<<: ", "---\n", "...\n", "%YAML 1.1\n", "\u{0}",
            "\u{E000}1\u{E001}", "\u{FEFF}", "-1", "99999999999999999999", "0x7f", ".inf", "\\",
            "\"\\ud800\"", "\"\\x00\"", "workers: 1\n", "  ", "limits: { fields: 1 }\n",
            "${A}", "$${", "${", "$", "include: ['*']\n", "watch: true\n",
        ]
        var bytes = original
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            guard !bytes.isEmpty else { break }
            let at = Int.random(in: 0..<bytes.count, using: &random)
            let end = min(bytes.count, at + Int.random(in: 0...40, using: &random))
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.removeSubrange(at..<end)
            case 2: bytes.insert(contentsOf: bytes[at..<end], at: at)
            case 3:
                let to = Int.random(in: 0...bytes.count, using: &random)
                bytes.insert(contentsOf: Array(bytes[at..<end]), at: to)
            case 4: bytes.removeSubrange(at...)
            default:
                let piece = pieces.randomElement(using: &random) ?? ""
                bytes.insert(contentsOf: Array(piece.utf8), at: at)
            }
        }
        return bytes
    }
}
