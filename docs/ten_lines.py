"""What the first page shows: its code, what that prints, and the picture it draws."""

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import LabelCVaR, RobustLogisticRegression
from equipoise.datasets import load_thyroid
from equipoise.display import ClassRisksDisplay

X, y = load_thyroid(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, stratify=y, random_state=0)
plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
robust = make_pipeline(StandardScaler(), RobustLogisticRegression(LabelCVaR(0.1))).fit(X, y)

shown = ClassRisksDisplay.from_estimator({"plain": plain, "robust": robust}, X_new, y_new)
print(shown.to_frame().round(3).to_string(index=False))
