import ArgumentParser
import CLinux
import Gateway
import Imaging
import JSONSchema
import PinfoldConfiguration
import Transformation

/// `pinfold transform`: what a route's rules make of content, without a connection.
struct Transform: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what a route's rules make of content, without a connection.",
        discussion: """
            Reads the content of a response, or with --request of a request, from standard input, \
            without content coding, and writes what would be passed on to standard output; by the \
            code that does it in the gateway. Standard error says what was done: the steps, the \
            type, the sizes. Exits with 1 where the content is refused, with the reason, the place \
            and what stands there, as the reply would say, and with 2 if the question cannot be \
            answered: a configuration that is not valid, an unknown route.
            """)

    enum Side: String, EnumerableFlag {
        case response
        case request
    }

    @Option(
        help: ArgumentHelp(
            "The entry of `hosts`: its name, or else its first pattern.", valueName: "name"))
    var route: String

    @Option(help: ArgumentHelp("The configuration file.", valueName: "file"))
    var config: String?

    @Flag(
        help: """
            Whose content it is: by default a response's, unless the route has rules for the \
            content of requests only.
            """)
    var side: Side?

    @Option(
        help: ArgumentHelp(
            "What Content-Type says, '' for none; by default what the route is for.",
            valueName: "type"))
    var contentType: String?

    @Option(help: ArgumentHelp("The response's status; 200 by default.", valueName: "number"))
    var status: UInt16?

    @Flag(help: "The response answers HEAD: it has no content, and nothing is read.")
    var head = false

    func validate() throws {
        if side == .request, status != nil || head {
            throw ValidationError("--status and --head are about responses, not with --request")
        }
        if let status, !(200...599).contains(status) {
            throw ValidationError("--status is \(status); expected a number from 200 to 599")
        }
    }

    mutating func run() throws {
        let entry = try entryOrExit()
        let side = side ?? Self.side(of: entry, isResponse: status != nil || head)
        contentType =
            contentType
            ?? (side == .request ? entry.request.assumedType : entry.response.assumedType)
        let images = entry.response.needsImages && side == .response ? ImageService() : nil
        defer { images?.end() }
        let schema = try side == .response ? schemaOrExit(entry.response) : nil
        do throws(TransformationFailure) {
            switch side {
            case .request: try transformRequest(entry.request)
            case .response:
                let checks = ResponseChecks(entry.response, schema: schema, images: images)
                try transformResponse(checks, maximum: entry.response.maximumBytes)
            }
        } catch {
            writeToStandardError(Self.lines(of: error))
            throw ExitCode(1)
        }
    }

    private func entryOrExit() throws -> HostEntry {
        let source = ConfigurationSource(file: config, overlay: CommandLineOverlay())
        let loaded: LoadedConfiguration
        do throws(ConfigurationErrors) {
            loaded = try source.load()
        } catch {
            writeToStandardError("\(error)\n")
            throw ExitCode(2)
        }
        let entries = loaded.snapshot.hosts.entries
        guard let entry = entries.first(where: { $0.label == route }) else {
            let known = entries.prefix(20).map(\.label).joined(separator: ", ")
            writeToStandardError(
                "pinfold: no entry of hosts is called \(route); "
                    + (entries.isEmpty ? "there is none\n" : "there are: \(known)\n"))
            throw ExitCode(2)
        }
        return entry
    }

    private func schemaOrExit(_ rules: ResponseRules) throws -> JSONSchema? {
        do throws(JSONSchemaError) {
            return try rules.schema.map { file throws(JSONSchemaError) in
                try JSONSchema(file.text)
            }
        } catch {
            writeToStandardError("pinfold: the schema of \(route) cannot be used: \(error)\n")
            throw ExitCode(2)
        }
    }

    // MARK: - Sides

    private static func side(of entry: HostEntry, isResponse: Bool) -> Side {
        let isRequest = RequestTranslation(entry.request) != nil
        let response = ResponseChecks(entry.response, schema: nil, images: nil)
        return isRequest && response == nil && !isResponse ? .request : .response
    }

    private mutating func transformRequest(_ rules: RequestRules) throws(TransformationFailure) {
        guard let translation = RequestTranslation(rules),
            try translation.applies(toContentType: contentType)
        else { return passUnseen([]) }
        let content = readContent(upTo: translation.maximumBytes)
        guard content.count <= translation.maximumBytes else {
            throw TransformationFailure(
                .requestBodyTooLarge, "it has more than \(translation.maximumBytes) bytes")
        }
        if contentType == BodyFormat.multipart.mediaType {
            contentType = BodyFormat.multipart.mediaType(beginning: content)
        }
        let made = try translation.translate(content, contentType: contentType)
        let formats = rules.body.map { ["\($0.from.rawValue)-to-\($0.to.rawValue)"] }
        tell(steps: formats ?? [], type: made.contentType, content.count, made.bytes.count)
        writeToStandardOutput(made.bytes)
    }

    private func transformResponse(
        _ checks: ResponseChecks?, maximum: Int
    ) throws(TransformationFailure) {
        guard let checks else { return passUnseen([]) }
        try checks.check(status: status ?? 200)
        guard !head else {
            try checks.check(contentType: contentType, hasContent: false)
            return tell(steps: [], type: checks.changedContentType(contentType), 0, 0)
        }
        let content = readContent(upTo: maximum)
        try checks.check(contentType: contentType, hasContent: !content.isEmpty)
        let plan = try checks.plan(
            contentType: contentType, isPartial: false, noTransform: false,
            needsContent: checks.needsContent(status: status ?? 200))
        guard let plan else { return passUnseen(content) }
        guard content.count <= plan.maximumBytes else {
            guard plan.larger == .pass else {
                throw TransformationFailure(
                    .responseBodyTooLarge, "it has more than \(plan.maximumBytes) bytes")
            }
            return passUnseen(content)
        }
        let planned = try plan.run(content)
        let bytes = planned.changed?.bytes ?? content
        tell(
            steps: planned.steps, type: planned.changed?.contentType, content.count, bytes.count)
        writeToStandardOutput(bytes)
    }

    // MARK: - Words

    /// Says what was done.
    ///
    /// - Parameter type: nil where it is what it was.
    private func tell(steps: [String], type: String?, _ before: Int, _ after: Int) {
        let was = contentType ?? "none"
        let isChanged = type != nil && type != contentType
        let lines = [
            "steps: \(steps.isEmpty ? "none" : steps.joined(separator: ", "))",
            "type: \(isChanged ? "\(was) to \(type ?? "none")" : was)",
            head ? nil : "bytes: \(before) to \(after)",
        ]
        writeToStandardError(lines.compactMap { $0.map { $0 + "\n" } }.joined())
    }

    /// Why content is refused, as the reply says it.
    private static func lines(of failure: TransformationFailure) -> String {
        var lines = "refused: \(failure.problem.rawValue)\n\(failure.detail)"
        if let place = failure.place { lines += " (\(place))" }
        lines += "\n"
        guard !failure.excerpt.isEmpty else { return lines }
        let scalars = String(decoding: failure.excerpt, as: UTF8.self).unicodeScalars.map {
            $0.properties.isWhitespace || $0.properties.generalCategory == .control ? " " : $0
        }
        return lines + "content: \(String(String.UnicodeScalarView(scalars)))\n"
    }

    // MARK: - Content

    /// Standard input, as far as it is no longer than this, and otherwise its beginning, which is.
    private func readContent(upTo maximum: Int) -> [UInt8] {
        var content: [UInt8] = []
        while content.count <= maximum {
            let chunk = readStandardInput()
            if chunk.isEmpty { break }
            content += chunk
        }
        return content
    }

    /// Passes standard input on as it is, behind what was read of it.
    private func passUnseen(_ beginning: [UInt8]) {
        writeToStandardError("steps: none\ntype: \(contentType ?? "none")\nnot looked at\n")
        guard !head else { return }
        writeToStandardOutput(beginning)
        while true {
            let chunk = readStandardInput()
            if chunk.isEmpty { return }
            writeToStandardOutput(chunk)
        }
    }
}

extension ResponseRules {
    fileprivate var needsImages: Bool { image != nil || validate == .image }
}
