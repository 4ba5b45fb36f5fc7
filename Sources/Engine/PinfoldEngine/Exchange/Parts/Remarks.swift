extension Exchange {
    /// What is reported about few exchanges: why one failed, and what rules changed in its
    /// messages. It is apart from ``Report`` so that most exchanges need not make it new.
    package struct Remarks {
        /// Why the request was not served, or the response was cut off; `nil` if neither.
        package private(set) var fault: ExchangeError?
        /// The addresses tried if no connection could be made; usually `nil`.
        package private(set) var failedAttempts: FailedAttempts?
        /// What its route's rules changed in the messages; usually `nil`, for nothing.
        package private(set) var transformed: TransformationRecord?
        /// The name of the rule of `access.rules` that decided, in UTF-8; `nil` if none matched.
        /// Exchanges share the rule's own bytes.
        package private(set) var rule: [UInt8]?
        /// The names of the rules before it that only report.
        package private(set) var reportedRules: [String] = []

        /// The parent through which the request went last, or was tried to go; usually `nil`.
        package private(set) var parent: UpstreamProxy?

        /// The path of the Unix socket of the last server that has one; usually `nil`.
        private(set) var unixPath: String?

        /// The beginning of the final head that the client was sent, in the form of HTTP/1; empty
        /// unless it is kept (``Environment/keepsResponseHeads``).
        package private(set) var responseHead: [UInt8] = []
        /// Whether it has more bytes than are kept.
        package private(set) var isResponseHeadCut = false

        mutating func sent(head: [UInt8], isCut: Bool) {
            (responseHead, isResponseHeadCut) = (head, isCut)
        }

        /// What is kept of the content of both messages; `nil` unless a recording wants it.
        package private(set) var contents: KeptContents?

        mutating func keep(_ contents: KeptContents) { self.contents = contents }

        mutating func goes(through parent: UpstreamProxy?) { self.parent = parent }

        mutating func goes(toUnixSocket path: String) { unixPath = path }

        mutating func failed(_ fault: ExchangeError) { self.fault = fault }

        mutating func judged(by rule: [UInt8]?, reported: [String]) {
            self.rule = rule
            reportedRules = reported
        }

        /// - Parameter attempts: the addresses that could not be connected to, if that is the
        ///   reason of a failure.
        mutating func tried(_ attempts: FailedAttempts?) { failedAttempts = attempts }

        /// What the rules have done with the content of the request.
        mutating func changed(request change: TransformationRecord.Change) {
            record.request = change
        }

        /// What the rules have done with the content of the response.
        mutating func changed(response change: TransformationRecord.Change) {
            record.response = change
        }

        private var record: TransformationRecord {
            mutating get {
                if let transformed { return transformed }
                let made = TransformationRecord()
                transformed = made
                return made
            }
        }
    }
}
