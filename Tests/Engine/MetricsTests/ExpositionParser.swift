/// A strict reader of expositions, for tests: it fails on what the specifications do not allow.
struct ParsedExposition {
    struct Sample: Equatable {
        var name: String
        var labels: [String: String]
        var value: Double
    }

    struct Family {
        var name: String
        var type = ""
        var help: String?
        var unit: String?
        var samples: [Sample] = []
    }

    struct ParseError: Error, CustomStringConvertible {
        var description: String
    }

    private(set) var families: [Family] = []
    private var values: [String: [[String: String]: Double]] = [:]

    /// Reads an exposition; `isOpenMetrics` selects the rules.
    init(_ text: String, isOpenMetrics: Bool) throws {
        guard text.hasSuffix("\n") else { throw ParseError(description: "no line feed at the end") }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        if isOpenMetrics {
            guard lines.last == "# EOF" else { throw ParseError(description: "no # EOF") }
            lines = lines.dropLast()
        }
        for line in lines { try read(line, isOpenMetrics) }
        try check(isOpenMetrics)
    }

    subscript(family: String) -> Family? { families.first { $0.name == family } }

    /// The value of a sample, if it is there.
    func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        values[name]?[labels]
    }

    private mutating func read(_ line: Substring, _ isOpenMetrics: Bool) throws {
        guard !line.isEmpty else { throw ParseError(description: "an empty line") }
        guard line.hasPrefix("#") else { return try readSample(line, isOpenMetrics) }
        let parts = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "#" else {
            throw ParseError(description: "metadata: \(line)")
        }
        let name = String(parts[2])
        if families.last?.name != name {
            guard self[name] == nil else { throw ParseError(description: "\(name) again") }
            families.append(Family(name: name))
        }
        let last = families.count - 1
        guard families[last].samples.isEmpty else {
            throw ParseError(description: "metadata of \(name) after samples")
        }
        let value = String(parts[3])
        switch parts[1] {
        case "HELP":
            guard families[last].help == nil else { throw ParseError(description: "HELP twice") }
            families[last].help = value
        case "TYPE":
            guard families[last].type.isEmpty else { throw ParseError(description: "TYPE twice") }
            let types = ["counter", "gauge", "histogram"] + (isOpenMetrics ? ["info"] : [])
            guard types.contains(value) else { throw ParseError(description: "type \(value)") }
            families[last].type = value
        case "UNIT":
            guard isOpenMetrics, name.hasSuffix("_" + value) else {
                throw ParseError(description: "unit \(value) of \(name)")
            }
            families[last].unit = value
        default: throw ParseError(description: "metadata: \(line)")
        }
    }

    private mutating func readSample(_ line: Substring, _ isOpenMetrics: Bool) throws {
        let name = String(line.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == ":" })
        guard name.first.map({ !$0.isNumber }) ?? false else {
            throw ParseError(description: "name: \(line)")
        }
        var rest = line.dropFirst(name.count)
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest = rest.dropFirst()
            while rest.first != "}" {
                let (label, value) = try ParsedExposition.readLabel(&rest)
                guard labels.updateValue(value, forKey: label) == nil else {
                    throw ParseError(description: "label \(label) twice")
                }
                if rest.first == "," { rest = rest.dropFirst() }
            }
            rest = rest.dropFirst()
        }
        guard rest.first == " ", let value = Double(rest.dropFirst()) else {
            throw ParseError(description: "value: \(line)")
        }
        guard let last = families.indices.last else { throw ParseError(description: "no family") }
        let suffixes: [String]
        switch families[last].type {
        case "histogram": suffixes = ["_bucket", "_sum", "_count"]
        case "counter": suffixes = [isOpenMetrics ? "_total" : ""]
        case "info": suffixes = ["_info"]
        default: suffixes = [""]
        }
        guard suffixes.contains(where: { families[last].name + $0 == name }) else {
            throw ParseError(description: "\(name) in \(families[last].name)")
        }
        let sample = Sample(name: name, labels: labels, value: value)
        guard values[name, default: [:]].updateValue(value, forKey: labels) == nil else {
            throw ParseError(description: "twice: \(line)")
        }
        families[last].samples.append(sample)
    }

    private static func readLabel(_ rest: inout Substring) throws -> (String, String) {
        let label = String(rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
        rest = rest.dropFirst(label.count)
        guard !label.isEmpty, rest.hasPrefix("=\"") else {
            throw ParseError(description: "label: \(rest)")
        }
        rest = rest.dropFirst(2)
        var value = ""
        while let character = rest.first, character != "\"" {
            rest = rest.dropFirst()
            guard character == "\\" else {
                value.append(character)
                continue
            }
            switch rest.first {
            case "n": value.append("\n")
            case "\\": value.append("\\")
            case "\"": value.append("\"")
            default: throw ParseError(description: "escape: \(rest)")
            }
            rest = rest.dropFirst()
        }
        guard rest.first == "\"" else { throw ParseError(description: "open label value") }
        rest = rest.dropFirst()
        return (label, value)
    }

    private func check(_ isOpenMetrics: Bool) throws {
        var names: [String: String] = [:]
        for family in families {
            guard !family.type.isEmpty, let help = family.help, !help.isEmpty else {
                throw ParseError(description: "\(family.name) without type or help")
            }
            let isCounter = family.type == "counter"
            guard isOpenMetrics || !isCounter || family.name.hasSuffix("_total") else {
                throw ParseError(description: "\(family.name): a counter without _total")
            }
            // No name may be used by two families, with or without a suffix.
            for name in Set(family.samples.map(\.name) + [family.name]) {
                if let other = names.updateValue(family.name, forKey: name) {
                    throw ParseError(description: "\(name) in \(other) and \(family.name)")
                }
            }
            for sample in family.samples where isCounter || family.type == "histogram" {
                guard sample.value >= 0 else { throw ParseError(description: "\(sample)") }
            }
            if family.type == "histogram" { try checkHistogram(family) }
        }
    }

    private func checkHistogram(_ family: Family) throws {
        var bounds: [[String: String]: [(Double, Double)]] = [:]
        for sample in family.samples where sample.name.hasSuffix("_bucket") {
            var labels = sample.labels
            guard let text = labels.removeValue(forKey: "le"),
                let bound = text == "+Inf" ? .infinity : Double(text)
            else { throw ParseError(description: "le: \(sample)") }
            guard text == "+Inf" || text.contains(".") else {
                throw ParseError(description: "le is no OpenMetrics float: \(text)")
            }
            bounds[labels, default: []].append((bound, sample.value))
        }
        for (labels, buckets) in bounds {
            for (one, next) in zip(buckets, buckets.dropFirst()) {
                guard one.0 < next.0, one.1 <= next.1 else {
                    throw ParseError(description: "buckets of \(family.name) \(labels)")
                }
            }
            guard buckets.last?.0 == .infinity,
                buckets.last?.1 == value(family.name + "_count", labels),
                value(family.name + "_sum", labels) != nil
            else { throw ParseError(description: "count of \(family.name) \(labels)") }
        }
    }
}
