/// Which of an exchange's messages.
public enum MetricDirection: UInt8, Sendable, CaseIterable {
    case request
    case response

    var label: StaticString {
        switch self {
        case .request: "request"
        case .response: "response"
        }
    }
}

/// What is counted about content processed by a route's rules.
enum TransformationCell: UInt8, CaseIterable {
    /// Messages whose content was forwarded unchanged.
    case checked
    /// Messages whose content was changed.
    case changed
    /// Bytes of content as received.
    case bytesIn
    /// Bytes of content as forwarded.
    case bytesOut
    case microseconds
}

extension WorkerMetrics {
    /// Counts a message whose content was processed by a route's rules.
    /// - Parameters:
    ///   - route: the listener and the host entry.
    ///   - bytes: the bytes of content as received and as forwarded.
    ///   - microseconds: the time that checking and changing took.
    public func recordTransformation(
        route: RouteIndex, _ direction: MetricDirection, isChanged: Bool,
        bytes: (in: UInt64, out: UInt64), microseconds: UInt64
    ) {
        let block = block(ofRoute: route)
        func add(_ amount: UInt64, _ cell: TransformationCell) {
            block.add(amount, to: RouteLayout.transformation(direction, cell))
        }
        add(1, isChanged ? .changed : .checked)
        add(bytes.in, .bytesIn)
        add(bytes.out, .bytesOut)
        add(microseconds, .microseconds)
    }
}

extension ExpositionWriter {
    /// The metrics of content processed by routes' rules, if there is any.
    mutating func writeTransformations(_ routes: [RouteSeries]) {
        family(
            "pinfold_transformed_messages", .counter,
            help: "Messages whose content a route's rules processed, by result.")
        each(routes, .checked, "result", "checked")
        each(routes, .changed, "result", "changed")
        family(
            "pinfold_transformation_bytes", .counter,
            help: "Bytes of content processed by a route's rules, as received and as forwarded.",
            unit: "bytes")
        each(routes, .bytesIn, "side", "in")
        each(routes, .bytesOut, "side", "out")
        family(
            "pinfold_transformation_seconds", .counter,
            help: "Time spent checking and changing content.", unit: "seconds")
        for route in routes {
            for direction in MetricDirection.allCases {
                let count = route.total(at: RouteLayout.transformation(direction, .microseconds))
                guard count > 0 else { continue }
                begin(route.labels)
                label("direction", direction.label)
                end(millionths: count)
            }
        }
    }

    private mutating func each(
        _ routes: [RouteSeries], _ cell: TransformationCell, _ name: StaticString,
        _ value: StaticString
    ) {
        for route in routes {
            for direction in MetricDirection.allCases {
                let count = route.total(at: RouteLayout.transformation(direction, cell))
                guard count > 0 else { continue }
                begin(route.labels)
                label("direction", direction.label)
                label(name, value)
                end(count)
            }
        }
    }
}
