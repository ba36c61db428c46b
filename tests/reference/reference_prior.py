"""A slow, literal reference of the SCM prior and the PU split, one loop a formula.

Written from the paper (Sections 2.1-2.3 and 4.1) and the decided table alone; it shares no code
with `prior_gen`. Every random draw is an argument. `number` is the type all arithmetic is rounded
to: `float` for float64, `numpy.float32` to round every single operation to float32.

Data are nested lists: a table is a list of rows, a state [n][h] a list of hidden vectors.
"""

import math
from fractions import Fraction

# Section 2.1: the bank of ten nonlinearities, formula by formula.
ACTIVATION_FORMULAS = {
    "tanh": math.tanh,
    "relu": lambda x: x if x > 0 else 0.0,
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2.0)),  # x * Phi(x)
    "identity": lambda x: x,
    "sign": lambda x: 1.0 if x > 0 else (-1.0 if x < 0 else 0.0),
    "step": lambda x: 1.0 if x > 0 else 0.0,
    "rbf": lambda x: math.exp(-(x * x)),
    "sin": math.sin,
    "square": lambda x: x * x,
    "abs": lambda x: -x if x < 0 else x,
}


def numbers(array, number=float):
    """Nested lists of `number` from an array of one to three dimensions."""
    if getattr(array, "ndim", 0) == 0 and not isinstance(array, list):
        return number(array)
    return [numbers(item, number) for item in array]


def dot(weights, values, number=float):
    """Sum of weights[j] * values[j], rounded at every operation."""
    total = number(0)
    for weight, value in zip(weights, values, strict=True):
        total = number(total + number(weight * value))
    return total


def matrix_times_vector(matrix, vector, number=float):
    return [dot(row, vector, number) for row in matrix]


# Section 2.2: the forward pass.


def input_layer(causes, input_weight, number=float):
    """h_i^(0) = W_0 u_i."""
    return [matrix_times_vector(input_weight, u, number) for u in causes]


def hidden_layer(state, activation, weight, noise, clamp, number=float):
    """h_i^(l) = W_l phi_l(h_i^(l-1)) + eps_i^(l), the state clamped before phi_l."""
    formula = ACTIVATION_FORMULAS[activation]
    result = []
    for row, epsilon in zip(state, noise, strict=True):
        activated = []
        for value in row:
            clamped = max(-clamp, min(clamp, float(value)))
            activated.append(number(formula(clamped)))
        product = matrix_times_vector(weight, activated, number)
        result.append([number(p + e) for p, e in zip(product, epsilon, strict=True)])
    return result


def hidden_states(causes, input_weight, hidden_weights, noise, activations, clamp, number=float):
    """[h^(1), ..., h^(L_g - 1)], each [n][h]."""
    state = input_layer(causes, input_weight, number)
    states = []
    for weight, epsilon, activation in zip(hidden_weights, noise, activations, strict=True):
        state = hidden_layer(state, activation, weight, epsilon, clamp, number)
        states.append(state)
    return states


def label_by_readout(final_state, r_y, number=float):
    """Non-causal: s_i = r_y . h_i^(L_g - 1)."""
    return [dot(r_y, h, number) for h in final_state]


def features_by_readout(final_state, r_x, feature_order, number=float):
    """Non-causal, head: x_i = R_x h_i^(L_g - 1), the features put in `feature_order`."""
    table = []
    for h in final_state:
        x = matrix_times_vector(r_x, h, number)
        table.append([x[j] for j in feature_order])
    return table


def features_by_causes(causes, feature_order):
    """Non-causal, causes: x_i = u_i (d = k), the features put in `feature_order`."""
    return [[u[j] for j in feature_order] for u in causes]


def node_pool(states):
    """Causal: row i is h_i^(1), ..., h_i^(L_g - 1) concatenated, in block-major order."""
    pool = []
    for i in range(len(states[0])):
        row = []
        for state in states:
            row.extend(state[i])
        pool.append(row)
    return pool


def features_and_label_of_pool(pool, feature_nodes, label_node):
    """Causal: x_i and s_i are nodes of the pool; no readout head is used."""
    features = [[row[node] for node in feature_nodes] for row in pool]
    return features, [row[label_node] for row in pool]


def label_blocks(position, hidden_layers, width):
    """Causal: the nodes the label is uniform over, the first or the last hidden block."""
    block = {"first": 0, "last": hidden_layers - 2}[position]
    return [block * width + unit for unit in range(width)]


def clique_windows(label_node, d, pool_size):
    """Causal, clique: all runs of d + 1 consecutive pool nodes that contain the label node."""
    windows = []
    for start in range(pool_size - d):
        window = list(range(start, start + d + 1))
        if label_node in window:
            windows.append(window)
    return windows


def smallest_width(d, hidden_layers):
    """The least h for which the pool of (L_g - 1) h nodes holds d features and the label."""
    width = 1
    while (hidden_layers - 1) * width < d + 1:
        width += 1
    return width


# Section 2.2, last paragraph: standardisation, clip, ranking.


def standardize_column(values, clip):
    """Zero mean, unit (population) variance over the n samples, clipped; a constant is zero."""
    values = [float(value) for value in values]
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / n
    if all(value == values[0] for value in values):
        return [0.0] * n
    deviation = math.sqrt(variance)
    return [max(-clip, min(clip, (value - mean) / deviation)) for value in values]


def standardize_table(table, clip):
    """Each feature by itself."""
    columns = [standardize_column(column, clip) for column in zip(*table, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def rank_labels(score, n_negative, tie_order):
    """0 (negative) for the `n_negative` rows of the largest score, 1 (positive) for the others.

    Among equal scores the row that comes first in `tie_order` ranks first.
    """
    place = {row: position for position, row in enumerate(tie_order)}
    labels = []
    for i in range(len(score)):
        ahead = 0
        for j in range(len(score)):
            if score[j] > score[i] or (score[j] == score[i] and place[j] < place[i]):
                ahead += 1
        labels.append(0 if ahead < n_negative else 1)
    return labels


# Section 2.3: sizes and split, in exact arithmetic.


def pu_sizes(n_labeled, n_unlabeled, pi):
    """(n_tr, negatives of all n = n_tr + n_u rows) for an exact pi.

    n_tr = ceil(P / (1 - pi)); ceil(pi n) negatives, moved only where the unlabelled part would
    be left without one of the classes.
    """
    pi = Fraction(pi)
    n_training = math.ceil(n_labeled / (1 - pi))
    negatives = math.ceil(pi * (n_training + n_unlabeled))
    removed = n_training - n_labeled
    while negatives - removed < 1:
        negatives += 1
    while negatives - removed > n_unlabeled - 1:
        negatives -= 1
    return n_training, negatives


def unlabeled_size(n_labeled, eta):
    """n_u = ceil(P eta) for an exact eta."""
    return math.ceil(n_labeled * Fraction(eta))


def pu_split(labels, n_labeled, n_removed, positive_order, negative_order, unlabeled_order):
    """Rows of the PU task (P labelled positives, then the unlabelled) and the latter's labels.

    The pools of positives and negatives come shuffled; the training portion takes the first of
    each, its negatives are removed, the rest is unlabelled and comes shuffled once more.
    """
    assert sorted(positive_order) == [i for i, label in enumerate(labels) if label == 1]
    assert sorted(negative_order) == [i for i, label in enumerate(labels) if label == 0]
    training = list(positive_order[:n_labeled]) + list(negative_order[:n_removed])
    unlabeled = list(positive_order[n_labeled:]) + list(negative_order[n_removed:])
    labeled = [row for row in training if labels[row] == 1]
    assert sorted(unlabeled_order) == sorted(unlabeled)
    return labeled + list(unlabeled_order), [labels[row] for row in unlabeled_order]


# Section 4.1: the curriculum.


def stage_interval(stage, n_stages, first, final):
    """Both ends move linearly from stage 1 to stage K; the tail stays at stage K. Exact."""
    s = min(stage, n_stages)
    share = Fraction(s - 1, n_stages - 1)
    return tuple(
        Fraction(a) + share * (Fraction(b) - Fraction(a)) for a, b in zip(first, final, strict=True)
    )


def causal_probability(stage, n_stages):
    """P(causal) = s / (2K)."""
    return Fraction(min(stage, n_stages), 2 * n_stages)


# The bulk sampler's generator.


def philox4x32(counter, key, rounds=10):
    """Four 32-bit words of Philox4x32 (Salmon et al., 2011) for a counter and a key."""
    low = 0xFFFFFFFF
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        product0, product1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & low,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return c0, c1, c2, c3
