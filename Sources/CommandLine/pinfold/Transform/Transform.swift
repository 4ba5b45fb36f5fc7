import ArgumentParser
import CLinux
import Gateway
import Imaging
import JSONSchema
import PinfoldConfiguration
import Transformation

/// `pinfold transform`: applies a route's rules to content, without a connection.
struct Transform: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Apply a route's rules to content, without a connection.",
        discussion: """
            Reads the content of a response (or of a request, with --request) from standard input, \
            applies the rules with the gateway's own code, and writes what the gateway would pass \
            on to standard output. The input must have no content coding. Prints the steps taken, \
            the content type and the sizes to standard error. If the content is refused, exits \
            with 1 and prints the reason, the position and an excerpt, as the error reply would. \
            Exits with 2 if the configuration is invalid or the route is unknown.
            """)

    enum Side: String, EnumerableFlag {
        case response
        case request
    }

    @Option(
        help: ArgumentHelp(
            "The entry of `hosts`, by its name, or by its first pattern if it has no name.",
            valueName: "name"))
    var route: String

    @Option(help: ArgumentHelp("The configuration file.", valueName: "file"), completion: .file())
    var config: String?

    @Flag(
        help: """
            Whether the input is the content of a response or of a request. The default is a \
            response, unless the route has rules only for the content of requests.
            """)
    var side: Side?

    @Option(
        help: ArgumentHelp(
            "The Content-Type, '' for none; by default the type that the route's rules are for.",
            valueName: "type"))
    var contentType: String?

    @Option(help: ArgumentHelp("The response status; 200 by default.", valueName: "number"))
    var status: UInt16?

    @Flag(help: "Treat the response as one to HEAD, which has no content; nothing is read.")
    var head = false

    func validate() throws {
        if side == .request, status != nil || head {
            throw ValidationError("--status and --head cannot be combined with --request")
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
        do throws(TransformationError) {
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
            error.write()
            throw ExitCode(2)
        }
        let entries = loaded.snapshot.hosts.entries
        guard let entry = entries.first(where: { $0.label == route }) else {
            let known = entries.prefix(20).map(\.label).joined(separator: ", ")
            writeError(
                "there is no entry \(route) in hosts; "
                    + (entries.isEmpty ? "hosts is empty" : "expected one of \(known)"))
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
            writeError("the schema of \(route) cannot be used: \(error)")
            throw ExitCode(2)
        }
    }

    // MARK: - Sides

    private static func side(of entry: HostEntry, isResponse: Bool) -> Side {
        let isRequest = RequestTranslation(entry.request) != nil
        let response = ResponseChecks(entry.response, schema: nil, images: nil)
        return isRequest && response == nil && !isResponse ? .request : .response
    }

    private mutating func transformRequest(_ rules: RequestRules) throws(TransformationError) {
        guard let translation = RequestTranslation(rules),
            try translation.applies(toContentType: contentType)
        else { return passUnseen([]) }
        let content = readContent(upTo: translation.maximumBytes)
        guard content.count <= translation.maximumBytes else {
            throw TransformationError(
                .requestBodyTooLarge, "it has more than \(translation.maximumBytes) bytes")
        }
        if contentType == BodyFormat.multipart.mediaType {
            contentType = BodyFormat.multipart.mediaType(beginning: content)
        }
        let made = try translation.translate(content, contentType: contentType)
        let formats = rules.body.map { ["\($0.from.rawValue)-to-\($0.to.rawValue)"] }
        report(steps: formats ?? [], type: made.contentType, content.count, made.bytes.count)
        writeToStandardOutput(made.bytes)
    }

    private func transformResponse(
        _ checks: ResponseChecks?, maximum: Int
    ) throws(TransformationError) {
        guard let checks else { return passUnseen([]) }
        try checks.check(status: status ?? 200)
        guard !head else {
            try checks.check(contentType: contentType, hasContent: false)
            return report(steps: [], type: checks.changedContentType(contentType), 0, 0)
        }
        let content = readContent(upTo: maximum)
        try checks.check(contentType: contentType, hasContent: !content.isEmpty)
        let plan = try checks.plan(
            contentType: contentType, isPartial: false, noTransform: false,
            needsContent: checks.needsContent(status: status ?? 200))
        guard let plan else { return passUnseen(content) }
        guard content.count <= plan.maximumBytes else {
            guard plan.larger == .pass else {
                throw TransformationError(
                    .responseBodyTooLarge, "it has more than \(plan.maximumBytes) bytes")
            }
            return passUnseen(content)
        }
        let planned = try plan.run(content)
        let bytes = planned.changed?.bytes ?? content
        report(
            steps: planned.steps, type: planned.changed?.contentType, content.count, bytes.count)
        writeToStandardOutput(bytes)
    }

    // MARK: - Messages

    /// Prints the steps, the content type and the sizes to standard error.
    ///
    /// - Parameter type: The new content type, or `nil` if it is unchanged.
    private func report(steps: [String], type: String?, _ before: Int, _ after: Int) {
        let was = contentType ?? "none"
        let isChanged = type != nil && type != contentType
        let lines = [
            "steps: \(steps.isEmpty ? "none" : steps.joined(separator: ", "))",
            "type: \(isChanged ? "\(was) to \(type ?? "none")" : was)",
            head ? nil : "bytes: \(before) to \(after)",
        ]
        writeToStandardError(lines.compactMap { $0.map { $0 + "\n" } }.joined())
    }

    /// Why content is refused, in the words of the error reply.
    private static func lines(of failure: TransformationError) -> String {
        var lines = "refused: \(failure.reason.rawValue)\n\(failure.detail)"
        if let place = failure.location { lines += " (\(place))" }
        lines += "\n"
        guard !failure.excerpt.isEmpty else { return lines }
        let scalars = String(decoding: failure.excerpt, as: UTF8.self).unicodeScalars.map {
            $0.properties.isWhitespace || $0.properties.generalCategory == .control ? " " : $0
        }
        return lines + "content: \(String(String.UnicodeScalarView(scalars)))\n"
    }

    // MARK: - Content

    /// Reads standard input to its end, or until it has exceeded the maximum.
    private func readContent(upTo maximum: Int) -> [UInt8] {
        var content: [UInt8] = []
        while content.count <= maximum {
            let chunk = readStandardInput()
            if chunk.isEmpty { break }
            content += chunk
        }
        return content
    }

    /// Copies the rest of standard input to standard output unchanged, after the part that was
    /// already read.
    private func passUnseen(_ beginning: [UInt8]) {
        writeToStandardError(
            "steps: none\ntype: \(contentType ?? "none")\ncontent passed on unread\n")
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
